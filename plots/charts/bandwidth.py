"""bus-bandwidth: all-reduce bus bandwidth against the size of the array."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from plots import style
from plots.charts.all_reduce import is_exact, notable
from plots.charts.rung_rows import grid_of
from plots.numbers import binary_size
from plots.page import Page, caption, plain_log
from plots.ratios import Resource, ladders, rate_bounds, resource_of
from plots.reading import Row, Run

MOST_LABELS = 5


def draw(run: Run) -> Iterator[tuple[str, Page | str]]:
    yield "bus-bandwidth", draw_bandwidth(run)


def draw_bound(axes: Axes, rows: list[Row]) -> None:
    """The bus bandwidth at the roof. Rows of one length have one roof."""
    bounds = {row["bytes"]: row["busbw_gbytes_per_s"] * 100 / row["percent_of_roof"]
              for row in rows if row["percent_of_roof"] and "bound" in row["roof"]}
    points = sorted(bounds.items())
    axes.plot([size / 2 for size, _ in points], [rate for _, rate in points],
              color=style.REFERENCE, linewidth=0.9, linestyle=(0, (5, 2)), zorder=1)


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
    over_ranks = [row for rows in panels.values() for row in rows if is_exact(row)]
    first = ladder.first_rung.name if ladder.first_rung else ""
    names = notable(over_ranks, ladder.rungs, first)
    styles = style.variant_styles(ladder.rungs)
    rungs = [rung for rung in ladder.rungs if rung.name in names]
    rows, columns = grid_of(len(panels))
    page = Page("all_reduce: bus bandwidth against array size",
                caption(run, (resource for _, resource in panels),
                        "Bus bandwidth: 2 (p - 1) / p times the size of the array, divided by the "
                        "time, where p is the number of ranks. Of the rungs that reduce exactly, "
                        "the first one and those nearest to the fastest. Line: the memory bound "
                        "of one host, the bandwidth bound of several. Error bars: 95 % confidence."),
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
        draw_bound(axes, found)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        sizes = sorted({row["bytes"] / 2 for row in found})
        labelled = sizes[::-(-len(sizes) // MOST_LABELS)]
        axes.set_xticks(labelled, [binary_size(size) for size in labelled])
        axes.xaxis.set_minor_locator(NullLocator())
        hosts = {row.get("hosts") or 1 for row in found} - {1}
        where = [f"{max(hosts)} hosts"] if hosts else []
        axes.set_title(", ".join(t for t in (direction, resource.label, *where) if t), loc="left")
        axes.set_xlabel("array size")
    for axes in page.axes[:, 0]:
        axes.set_ylabel("bus bandwidth (GB/s)")
    plain_log(page.axes[0, 0].yaxis)
    page.hide_from(len(panels))
    return page
