"""layouts-<primitive>: which memory layout wins for which shape, and what the conversion costs."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullFormatter

from plots.charts import style
from plots.charts.figure import Page, caption, chart
from plots.data.names import is_rung, resolve_builds_on
from plots.data.numbers import plural
from plots.data.ratios import Ladder, Resource, first_and_last, ladders, resource_of, resources_of
from plots.data.reading import Row, Run, grouped

SUITE = "layouts"
PLAIN = "nchw"
CONVERSIONS = "reorder"  # the primitive that converts between layouts
ROW_HEIGHT = 0.3  # inches
LOOKS = {"nhwc": (style.SERIES[1], "D"), "chwn": (style.SERIES[0], "o"),
         "nchw16c": (style.SERIES[5], "s")}
TICKS = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 20)
COARSE_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)


class Time(NamedTuple):
    """Seconds with their 95 % bounds; those of a sum are the sums of the bounds."""
    median: float
    low: float
    high: float

    def plus(self, other: Time) -> Time:
        return Time(*(a + b for a, b in zip(self, other)))


class Shape(NamedTuple):
    """The times of our rungs on one shape; `converted`: with the conversions of the input into the
    layout and of the result back."""
    name: str
    base: Time     # in nchw, of the rung that the others build on
    fastest: Time  # in nchw, of any algorithm
    times: dict[str, Time]
    converted: dict[str, Time]


Conversions = dict[tuple[Resource, str, str], Time]  # resource, direction, shape


@chart("layouts", needs="summary")
def draw(run: Run) -> Iterator[tuple[str, Page | str]]:
    every = ladders(run)
    conversions = conversion_times(row for ladder in every if ladder.primitive == CONVERSIONS
                                   for row in ladder.measured)
    for ladder in every:
        rows = [row for row in ladder.measured if row["suite"] == SUITE and is_rung(row)]
        if ladder.primitive != CONVERSIONS and rows:
            yield f"layouts-{ladder.primitive}", draw_layouts(run, ladder, rows, conversions)


def draw_layouts(run: Run, ladder: Ladder, rows: list[Row],
                 conversions: Conversions) -> Page | str:
    panels: dict[Resource, list[Shape]] = {}
    for resource in first_and_last(resources_of(rows)):
        of_resource = [row for row in rows if resource_of(row) == resource]
        if shapes := shapes_of(ladder, of_resource, conversions, resource):
            panels[resource] = shapes
    if not panels:
        return f"no shape of suite {SUITE} has a time in {PLAIN} and in another layout"
    every = [shape for shapes in panels.values() for shape in shapes]
    layouts = [layout for layout in LOOKS if any(layout in shape.times for shape in every)]
    has_conversions = any(shape.converted for shape in every)
    remark = (f"1x: the rung in {PLAIN} on which the rungs of the other layouts build. Black: our "
              f"fastest rung in {PLAIN}, of any algorithm. ")
    remark += ("Hollow: with the conversions of the input into the layout and of the result back."
               if has_conversions else
               f"Conversions are not shown: the run has no rows of {CONVERSIONS}, suite {SUITE}.")
    names = list(dict.fromkeys(shape.name for shape in every))
    page = Page(f"{ladder.primitive}: layouts against {PLAIN}, the same algorithm",
                caption(run, panels, remark), len(panels), len(panels),
                panel_height=0.6 + ROW_HEIGHT * len(names), share_y=True, share_x=True,
                finding=finding(panels[max(panels)]), legend=handles(layouts, has_conversions),
                legend_columns=3)
    for axes, (resource, shapes) in zip(page.panels(), panels.items()):
        axes.set_title(resource.label, loc="left")
        draw_panel(axes, names, shapes, layouts)
    return page


def draw_panel(axes: Axes, names: list[str], shapes: list[Shape], layouts: list[str]) -> None:
    axes.set_xscale("log")
    axes.axvline(1, color=style.REFERENCE, linewidth=0.9)
    for shape in shapes:
        y = names.index(shape.name)
        axes.plot([shape.base.median / shape.fastest.median], [y], marker="|", markersize=11,
                  markeredgewidth=2, color="black", zorder=4)
        for i, layout in enumerate(layouts):
            if layout not in shape.times:
                continue
            colour, marker = LOOKS[layout]
            place = y + 0.24 * (i - (len(layouts) - 1) / 2)
            speedup = shape.base.median / shape.times[layout].median
            if layout in shape.converted:
                slowed = shape.base.median / shape.converted[layout].median
                axes.plot([slowed, speedup], [place, place], color=colour, linewidth=0.9, zorder=2)
                axes.plot([slowed], [place], marker=marker, markersize=4.5, markerfacecolor="white",
                          markeredgecolor=colour, zorder=3)
            axes.plot([speedup], [place], marker=marker, markersize=4.5, color=colour, zorder=3)
    axes.set_yticks(range(len(names)), names, fontsize=style.SMALL, linespacing=1.1)
    axes.set_ylim(len(names) - 0.5, -0.5)
    low, high = axes.get_xlim()
    wide = high / low > 20
    ticks = [tick for tick in (COARSE_TICKS if wide else TICKS) if low <= tick <= high]
    axes.set_xticks(ticks, [f"{t:g}x" for t in ticks])
    axes.xaxis.set_minor_locator(FixedLocator([]))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(f"speedup over {PLAIN}")


def shapes_of(ladder: Ladder, rows: list[Row], conversions: Conversions,
              resource: Resource) -> list[Shape]:
    """The shapes that have a time in nchw and in another layout: first those on which the first
    layout gains most over the last one."""
    found = []
    for of_shape in grouped(rows, lambda row: (row["direction"], row["shape"])).values():
        by_layout = grouped(of_shape, lambda row: row["layout"])
        plain = by_layout.pop(PLAIN, [])
        best = {layout: min(there, key=lambda row: row["median_s"])
                for layout, there in by_layout.items() if layout in LOOKS}
        base = next((b for row in best.values() if (b := base_of(ladder, row, plain))), None)
        if base is None:
            continue
        times = {layout: time_of(row) for layout, row in best.items()}
        converted = {}
        for layout, row in best.items():
            moves = [conversions.get((resource, *move)) for move in conversions_of(row)]
            if moves and all(moves):
                converted[layout] = times[layout].plus(moves[0]).plus(moves[1])
        fastest = min((time_of(row) for row in plain), key=lambda time: time.median)
        found.append(Shape(label_of(base), time_of(base), fastest, times, converted))

    def order(shape: Shape) -> float:
        layouts = [layout for layout in LOOKS if layout in shape.times]
        return math.log(shape.times[layouts[0]].median / shape.times[layouts[-1]].median)
    return sorted(found, key=order)


def time_of(row: Row) -> Time:
    return Time(row["median_s"], row["ci_low_s"] or row["median_s"],
                row["ci_high_s"] or row["median_s"])


def base_of(ladder: Ladder, row: Row, plain: list[Row]) -> Row | None:
    """The row in nchw of the rung that this one builds on."""
    rung = next(rung for rung in ladder.rungs if rung.name == row["variant"])
    by_variant = {p["variant"]: p for p in plain}
    name = resolve_builds_on(rung, by_variant)
    return by_variant[name] if name else None


def label_of(row: Row) -> str:
    """The name of the problem without its layout, and what the name does not say of its shape."""
    name = row["problem"].removesuffix(f".{row['layout']}")
    direction = "" if row["direction"] == "forward" else f" {row['direction']}"
    shape = re.sub(r" (stride1x1|pad\d+x\d+|g1)(?= |$)", "", row["shape"])
    return f"{name}{direction}\n{shape}"


def finding(shapes: list[Shape]) -> str:
    """On how many shapes each layout is the fastest, the 95 % intervals apart from all others."""
    def winners(converted: bool) -> Counter[str]:
        won: Counter[str] = Counter()
        for shape in shapes:
            others = shape.converted if converted else shape.times
            times = {PLAIN: shape.base, **others}
            best = min(times, key=lambda layout: times[layout].median)
            is_clear = all(times[best].high < time.low for layout, time in times.items()
                           if layout != best)
            won[best if is_clear else "none"] += 1
        return won

    def text(won: Counter[str]) -> str:
        named = [f"{layout} on {count}" for layout, count in won.most_common() if layout != "none"]
        if named and won["none"]:
            named.append(f"too close on {won['none']}")
        return ", ".join(named)

    won = winners(converted=False)
    if not text(won):
        return ""
    found = f"Fastest of {plural(len(shapes), 'shape')}, same algorithm: {text(won)}"
    if any(shape.times.keys() != shape.converted.keys() for shape in shapes):
        return found
    paid = text(winners(converted=True))
    return f"{found}; with conversions {paid}" if paid else found


def handles(layouts: list[str], has_conversions: bool) -> list[Line2D]:
    def mark(label: str, **look: object) -> Line2D:
        return Line2D([], [], linestyle="none", markersize=5, label=label, **look)

    found = [mark(layout, marker=LOOKS[layout][1], color=LOOKS[layout][0]) for layout in layouts]
    found.append(mark(f"fastest in {PLAIN}", marker="|", markeredgewidth=2, color="black"))
    if has_conversions:
        found += [mark(f"{layout}, with conversions", marker=LOOKS[layout][1],
                       markerfacecolor="white", markeredgecolor=LOOKS[layout][0])
                  for layout in layouts]
    return found


def conversion_times(rows: Iterable[Row]) -> Conversions:
    """The fastest of our conversions."""
    by_problem = grouped(filter(is_rung, rows),
                         lambda row: (resource_of(row), row["direction"], row["shape"]))
    return {key: min(map(time_of, here)) for key, here in by_problem.items()}


def conversions_of(row: Row) -> list[tuple[str, str]]:
    """Direction and shape of the conversions of a forward row's input and result, from a shape such
    as "n64 c3 h28 w28 k32 r5 s5 stride1x1 pad2x2 g1"."""
    size = {name: int(value) for name, value in re.findall(r"\b([nchwkrs])(\d+)\b", row["shape"])}
    window = re.search(r"\bstride(\d+)x(\d+) pad(\d+)x(\d+)", row["shape"])
    if row["direction"] != "forward" or window is None or not set("nchwrs") <= size.keys():
        return []
    stride_h, stride_w, pad_h, pad_w = map(int, window.groups())
    height = (size["h"] + 2 * pad_h - size["r"]) // stride_h + 1
    width = (size["w"] + 2 * pad_w - size["s"]) // stride_w + 1
    images, channels = f"n{size['n']}", size["c"]
    return [(f"{PLAIN}_to_{row['layout']}", f"{images} c{channels} h{size['h']} w{size['w']}"),
            (f"{row['layout']}_to_{PLAIN}",
             f"{images} c{size.get('k', channels)} h{height} w{width}")]
