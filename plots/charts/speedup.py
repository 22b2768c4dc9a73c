"""ladder-<primitive>: speedup of each rung, geometric mean over the problems, a panel per
direction."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from plots.charts import style
from plots.charts.figure import Page, caption, chart, plain_log
from plots.charts.findings import gain_of, whole_gain
from plots.charts.rung_rows import (
    ROW_HEIGHT,
    RungRow,
    columns_of,
    handles,
    is_filled,
    label_rows,
    mark,
    rung_rows,
    shown_resources,
)
from plots.data.numbers import plural, short
from plots.data.ratios import (
    Ladder,
    Mean,
    Resource,
    geometric_mean,
    ladders,
    mean_ratio,
    problem_key,
    resource_of,
    rounds_operands,
)
from plots.data.reading import Run

# Width of the gain at the right edge, as a fraction of the panel, by the number of columns.
GAIN_WIDTH = {1: 0.09, 2: 0.17, 3: 0.26}

Speedups = dict[tuple[str, Resource], Mean]  # by variant and resource, of one direction


@chart("ladder", needs="summary")
def draw(run: Run) -> Iterator[tuple[str, Page | str]]:
    for ladder in ladders(run):
        yield f"ladder-{ladder.primitive}", draw_ladder(run, ladder)


def draw_ladder(run: Run, ladder: Ladder) -> Page | str:
    found: dict[str, Speedups] = {}
    for direction in ladder.directions:
        speedups = {(row.rung.name, resource): mean
                    for row in rung_rows(ladder) for resource in row.resources
                    if (mean := mean_ratio(ladder.speedups(row.rung, direction, resource)))}
        if speedups:
            found[direction] = speedups
    if not found:
        return "no row has a speedup"
    # Rungs for problems that the first rung cannot compute, for example with an epilogue, have no
    # speedup.
    have_one = {name for speedups in found.values() for name, _ in speedups}
    rows = [row for row in rung_rows(ladder) if row.rung.name in have_one]
    shown = shown_resources(rows)
    roofs = {direction: {r: roof for r in shown if (roof := roof_speedup(ladder, direction, r))}
             for direction in found}
    counts = {direction: max(mean.count for mean in speedups.values())
              for direction, speedups in found.items()}
    columns = columns_of(len(found))
    remark = (f"Geometric mean over {problems_of(counts)} of suite {suites(ladder)}. Bars: 95 % "
              "confidence. At the right: gain over the rung below, or over the one in brackets, on "
              "the most threads. From below: the main ladder, its loops by the compiler, the best "
              "rung of each branch, the libraries.")
    if any(mean.count < counts[direction] for direction, speedups in found.items()
           for mean in speedups.values()):
        remark += " (n): measured on n of the problems only."
    roof_lines = [Line2D([], [], label=f"roof, {r.label}", **roof_line(r, shown))
                  for r in shown if any(r in of_direction for of_direction in roofs.values())]
    page = Page(
        f"{ladder.primitive}: speedup over {ladder.baseline}", caption(run, shown, remark),
        len(found), columns, panel_height=0.55 + ROW_HEIGHT * len(rows),
        legend=[*handles(rows, shown), *roof_lines], legend_columns=9, share_x=True, share_y=True,
        finding=whole_gain(ladder))
    for axes, (direction, speedups) in zip(page.panels(), found.items()):
        axes.set_xscale("log")
        label_rows(axes, rows)
        axes.axvline(1, color="#AAAAAA", linewidth=0.7, zorder=1)
        for resource, roof in roofs[direction].items():
            axes.axvline(roof, **roof_line(resource, shown), zorder=1)
        for y, row in enumerate(rows):
            draw_rung(axes, y, row, speedups, shown, style.technique_style(row.rung.technique))
            if any(name == row.rung.name for name, _ in speedups):
                write_gain(axes, y, ladder, row, direction, speedups, counts[direction])
        axes.set_title(direction, loc="left")
        axes.set_xlabel("speedup")
        axes.tick_params(labelbottom=True)
    means = [mean for speedups in found.values() for mean in speedups.values()]
    ends = [roof for of_direction in roofs.values() for roof in of_direction.values()]
    low = min(1.0, *(mean.low for mean in means))
    high = max(1.0, *(mean.high for mean in means), *ends)
    width = GAIN_WIDTH[columns]
    low, high = low / (high / low * 2) ** 0.05, high * (high / low * 2) ** 0.05
    page.panels()[0].set_xlim(low, high * (high / low) ** (width / (1 - width)))
    for axes in page.panels():
        plain_log(axes.xaxis)
    return page


def roof_line(resource: Resource, shown: list[Resource]) -> dict:
    filled = is_filled(resource, shown)
    return {"color": style.REFERENCE, "linewidth": 1.1 if filled else 0.8,
            "linestyle": style.ROOF_DASHES if filled else (0, (1, 1.5))}


def roof_speedup(ladder: Ladder, direction: str, resource: Resource) -> float | None:
    """The speedup of a rung that would run every problem at its measured roof on this resource; for
    ladders whose speedups are over serial. Rungs on a GPU's tensor cores have a roof of their own:
    the highest counts."""
    at_roof: dict[tuple, dict[str, list[float]]] = {}
    for row in ladder.measured:
        if (row["direction"] == direction and resource_of(row) == resource
                and row["percent_of_roof"] and row["speedup_vs_serial"]
                and not rounds_operands(row)):
            at_roof.setdefault(problem_key(row), {}).setdefault(row["roof"], []).append(
                row["speedup_vs_serial"] * 100 / row["percent_of_roof"])
    return geometric_mean(max(map(statistics.median, roofs.values())) for roofs in at_roof.values())


def problems_of(counts: dict[str, int]) -> str:
    """8 problems (backward_data: 7)"""
    most = max(counts.values())
    fewer = ", ".join(f"{direction}: {count}"
                      for direction, count in counts.items() if count < most)
    return plural(most, "problem") + (f" ({fewer})" if fewer else "")


def suites(ladder: Ladder) -> str:
    return ", ".join(dict.fromkeys(row["suite"] for row in ladder.measured if row["suite"]))


def draw_rung(axes: Axes, y: int, row: RungRow, speedups: Speedups, shown: list[Resource],
              look: style.Style) -> None:
    here = [(r, speedups[row.rung.name, r]) for r in row.resources
            if (row.rung.name, r) in speedups]
    values = [mean.value for _, mean in here]
    if len(here) > 1:
        axes.plot([min(values), max(values)], [y, y], color=look.colour, linewidth=0.8, alpha=0.6,
                  zorder=2)
    for resource, mean in here:
        axes.errorbar(mean.value, y, xerr=[[mean.value - mean.low], [mean.high - mean.value]],
                      fmt="none", ecolor=look.edge, elinewidth=1.0, capsize=2, capthick=0.7)
        mark(axes, mean.value, y, look, is_filled(resource, shown), label=row.rung.name, zorder=3)


def write_gain(axes: Axes, y: int, ladder: Ladder, row: RungRow, direction: str,
               speedups: Speedups, problems: int) -> None:
    gain = gain_of(ladder, row.rung, direction)
    text = f"{short(gain.value)}x" if gain else ""
    partly = min(mean.count for (name, _), mean in speedups.items() if name == row.rung.name)
    text += f" ({partly})" if partly < problems else ""
    sure = gain is not None and not gain.low <= 1 <= gain.high
    axes.text(0.99, y, text.strip(), transform=axes.get_yaxis_transform(), ha="right",
              va="center_baseline", fontsize=style.SMALL,
              color=style.TEXT if sure else "#8A8A8A")
