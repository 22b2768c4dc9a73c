"""size-<primitive>: rate against problem size, or filter size, below the measured peak."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import itemgetter

from matplotlib.axes import Axes

from plots.charts import style
from plots.charts.figure import Page, caption, chart, plain_log
from plots.charts.findings import against_library
from plots.charts.labels import End
from plots.charts.lines import draw_lines, story
from plots.data.ceilings import peaks
from plots.data.names import widest_builds
from plots.data.ratios import (
    Ladder,
    Resource,
    first_and_last,
    ladders,
    resource_of,
    resources_of,
    rounds_operands,
)
from plots.data.reading import Row, Run

# primitive: column of the rate, its unit, column of the size, label of the size
COMPUTE = ("gflops_per_s", "GFLOP/s", "flops", "problem size (FLOPs)")
MEMORY = ("gbytes_per_s", "GB/s", "bytes", "problem size (bytes read and written)")
QUANTITIES = {"matmul": COMPUTE, "convolution": COMPUTE, "max_pool": MEMORY, "average_pool": MEMORY,
              "sgd_update": MEMORY}

# Suites that vary one size. Problems of other suites differ in shape: no line joins them.
SWEEPS = ("squares", "sweep", "triangle")
FILTERS = "filters"  # of convolution: varies the filter, which is the size of its chart
MOST_PANELS = 4

# Ratio of the highest to the lowest rate from which the axis is logarithmic.
LOGARITHMIC_FROM = 30
# The same with one ceiling, from this ratio of the highest rate to it: Winograd's and FFT's FLOPs
# are those of the definition.
ABOVE_PEAK = 1.5


@chart("size", needs="summary")
def draw(run: Run) -> Iterator[tuple[str, Page | str]]:
    for ladder in ladders(run):
        if ladder.primitive not in QUANTITIES:
            continue
        name = f"size-{ladder.primitive}"
        swept = ([row for row in ladder.measured if row["suite"] in SWEEPS]
                 or [row for row in ladder.measured if row["suite"] == FILTERS])
        resources = first_and_last(resources_of(swept))
        if not ladder.measured:
            yield name, "no row has a time"
        elif not swept:
            yield name, ("no row is of a suite that varies the size; --suite squares, sweep or "
                         "filters is")
        elif len({(row["direction"], resource_of(row)) for row in swept}) <= MOST_PANELS:
            yield name, draw_sizes(run, replace(ladder, measured=swept), resources)
        else:
            for resource in resources:
                suffix = resource.label.replace(" ", "-")
                yield f"{name}-{suffix}", draw_sizes(run, replace(ladder, measured=swept),
                                                     [resource])


def draw_sizes(run: Run, ladder: Ladder, resources: list[Resource]) -> Page | str:
    rate, unit, size, size_label = QUANTITIES[ladder.primitive]
    size_of: Callable[[Row], float | None] = itemgetter(size)
    what_varies = "problem size"
    if all(row["suite"] == FILTERS for row in ladder.measured):
        size, size_label, what_varies = "shape", "rows and columns of the filter", "filter size"
        size_of = filter_size
    directions = ladder.directions
    panels = [(direction, resource) for resource in resources for direction in directions]
    rows_of = {panel: [row for row in ladder.measured
                       if (row["direction"], resource_of(row)) == panel
                       and row[rate] and size_of(row) and not rounds_operands(row)]
               for panel in panels}
    drawn = {row["variant"] for rows in rows_of.values() for row in rows}
    if not drawn:
        return f"no row has both {rate} and {size}"
    widest = {rung.name for rung in widest_builds(ladder.measured_rungs)}
    rows_of = {panel: [row for row in rows if row["variant"] in widest]
               for panel, rows in rows_of.items()}
    rows_of = {panel: rows for panel, rows in rows_of.items() if rows}
    if max(len({size_of(row) for row in rows}) for rows in rows_of.values()) < 2:
        return "fewer than two sizes"
    styles = style.variant_styles(ladder.rungs)
    peaks_of = {r: peaks(run, unit, r) for r in resources}
    named = {panel: story(ladder, rows) for panel, rows in rows_of.items()}
    suites = ", ".join(dict.fromkeys(row["suite"] for row in ladder.measured))
    remark = (f"Suite {suites}. Named: the first rung, those that add more than 10 % over the rung "
              "below, the fastest, and the fastest library. Bars: 95 % confidence. ")
    what = "FMA peak" if unit == "GFLOP/s" else "bandwidth of each memory level"
    remark += (f"Dashed: measured {what}." if any(peaks_of.values())
               else f"No measured {what.partition(' of')[0]} in ceilings.json.")
    if size_of is filter_size:
        remark += " FLOPs are those of the definition: Winograd and FFT compute fewer."
    columns = 1 if len(rows_of) == 1 else 2
    last = max(resource for _, resource in rows_of)
    page = Page(
        f"{ladder.primitive}: {unit} against {what_varies}", caption(run, resources, remark),
        len(rows_of), columns, panel_height=2.7 if len(rows_of) <= columns else 2.1,
        finding=against_library(ladder, [row for (_, r), rows in rows_of.items() if r == last
                                         for row in rows]))
    for axes, (panel, rows) in zip(page.panels(), rows_of.items()):
        direction, resource = panel
        axes.set_xscale("log")
        axes.set_title(", ".join(t for t in (direction, resource.label) if t), loc="left")
        axes.set_xlabel(size_label)
        axes.set_ylabel(f"rate ({unit})")
        axes.margins(x=0.04)
        rates = [row[rate] for (_, r), found in rows_of.items() if r == resource for row in found]
        ceilings = top_of_axis(axes, peaks_of[resource], rates)
        ends = [End(max(map(size_of, rows)), value, f"{name} {value:.0f}", style.REFERENCE)
                for name, value in ceilings.items()]
        draw_lines(page, axes, rows, named[panel], styles, size_of, lambda row: row[rate], ends)
        plain_log(axes.xaxis)
        if size_of is filter_size:
            sizes = sorted({size_of(row) for row in rows})
            axes.set_xticks(sizes, [f"{value:.0f}" for value in sizes])
            axes.set_xticks([], minor=True)
    return page


def top_of_axis(axes: Axes, ceilings: dict[str, float], rates: list[float]) -> dict[str, float]:
    """Sets the top to the lowest ceiling that is at least every rate of this resource. Returns the
    ceilings that are on the panel, which it draws."""
    highest = max(rates)
    enough = [value for value in ceilings.values() if value >= highest]
    top = enough[0] if enough else highest * 1.05
    is_high = top > ABOVE_PEAK * max(ceilings.values(), default=top)
    if top / min(rates) > LOGARITHMIC_FROM and (len(ceilings) > 1 or is_high):
        axes.set_yscale("log")
        axes.set_ylim(min(rates) / 1.5, top if enough else highest * 1.5)
        plain_log(axes.yaxis)
    else:
        axes.set_ylim(0, top)
    shown = {name: value for name, value in ceilings.items() if value <= top}
    for value in shown.values():
        axes.axhline(value, clip_on=False, zorder=1, **style.DASHED)
    return shown


def filter_size(row: Row) -> float | None:
    """R of a square filter, from a shape such as "n4 c32 h56 w56 k32 r5 s5 …"."""
    found = re.search(r"\br(\d+) s(\d+)\b", row["shape"])
    return float(found[1]) if found and found[1] == found[2] else None
