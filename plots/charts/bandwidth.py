"""bus-bandwidth: all-reduce bus bandwidth against the size of the array."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.ticker import NullLocator

from plots import style
from plots.charts.rung_rows import grid_of
from plots.numbers import binary_size
from plots.page import Page, caption, plain_log
from plots.ratios import Resource, ladders, rate_bounds, resource_of
from plots.reading import Row, Run

MOST_LABELS = 5


def draw(run: Run) -> Iterator[tuple[str, Page | str]]:
    yield "bus-bandwidth", draw_bandwidth(run)


def draw_bandwidth(run: Run) -> Page | str:
    if run.summary is None:
        return "no summary.csv"
    ladder = next((found for found in ladders(run) if found.primitive == "all_reduce"),
                  None)
    if ladder is None:
        return "no all_reduce rows; they need mpirun"
    panels: dict[tuple[str, Resource], list[Row]] = {}
    for row in ladder.measured:
        if row["busbw_gbytes_per_s"] and row["bytes"]:
            panels.setdefault((row["direction"], resource_of(row)), []).append(row)
    if not panels:
        return "no all_reduce row has a bus bandwidth"
    styles = style.variant_styles(ladder.rungs)
    drawn = {row["variant"] for rows in panels.values() for row in rows}
    rungs = [rung for rung in ladder.rungs if rung.name in drawn]
    rows, columns = grid_of(len(panels))
    page = Page("all_reduce: bus bandwidth against array size",
                caption(run, (resource for _, resource in panels),
                        "Bus bandwidth: 2 (p - 1) / p times the size of the array, divided by the "
                        "time, where p is the number of ranks. Error bars: 95 % confidence."),
                rows, columns, panel_height=2.3 if rows == 1 else 1.85, legend_columns=5,
                legend=[styles[rung.name].handle(rung.name) for rung in rungs], share_y=True)
    for axes, ((direction, resource), found) in zip(page.panels(), sorted(panels.items())):
        for rung in rungs:
            points = sorted((row for row in found if row["variant"] == rung.name),
                            key=lambda row: row["bytes"])
            rates = [row["busbw_gbytes_per_s"] for row in points]
            bounds = [rate_bounds(row, rate) for row, rate in zip(points, rates)]
            # `bytes` counts the array twice, for reading and writing.
            axes.errorbar([row["bytes"] / 2 for row in points], rates,
                          yerr=[[rate - low for rate, (low, _) in zip(rates, bounds)],
                                [high - rate for rate, (_, high) in zip(rates, bounds)]],
                          elinewidth=0.6, label=rung.name, **styles[rung.name].line)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        sizes = sorted({row["bytes"] / 2 for row in found})
        labelled = sizes[::-(-len(sizes) // MOST_LABELS)]
        axes.set_xticks(labelled, [binary_size(size) for size in labelled])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_title(", ".join(t for t in (direction, resource.label) if t), loc="left")
        axes.set_xlabel("array size")
    for axes in page.axes[:, 0]:
        axes.set_ylabel("bus bandwidth (GB/s)")
    plain_log(page.axes[0, 0].yaxis)
    page.hide_from(len(panels))
    return page
