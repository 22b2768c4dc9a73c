"""bus-bandwidth: all-reduce bus bandwidth against the size of the array."""

from __future__ import annotations

from matplotlib.axes import Axes

from plots.charts import style
from plots.charts.all_reduce import MOST_LABELS, is_exact, label_sizes, notable
from plots.charts.figure import Page, caption, chart, plain_log
from plots.charts.findings import against_library
from plots.charts.lines import draw_lines
from plots.charts.rung_rows import columns_of
from plots.data.ratios import ladders, resource_of
from plots.data.reading import Row, Run, grouped


def draw_bound(axes: Axes, rows: list[Row]) -> None:
    """The bus bandwidth at the roof. Rows of one length have one roof."""
    bounds = {row["bytes"]: row["busbw_gbytes_per_s"] * 100 / row["percent_of_roof"]
              for row in rows if row["percent_of_roof"] and "bound" in row["roof"]}
    points = sorted(bounds.items())
    axes.plot([size / 2 for size, _ in points], [rate for _, rate in points],
              zorder=1, **style.DASHED)


@chart("bus-bandwidth", needs="summary")
def draw(run: Run) -> Page | str:
    ladder = next((found for found in ladders(run) if found.primitive == "all_reduce"),
                  None)
    if ladder is None:
        return "no all_reduce rows; they need mpirun"
    panels = grouped((row for row in ladder.measured if row["busbw_gbytes_per_s"] and row["bytes"]),
                     lambda row: (row["direction"], resource_of(row)))
    if not panels:
        return "no all_reduce row has a bus bandwidth"
    over_ranks = [row for rows in panels.values() for row in rows if is_exact(row)]
    names = notable(over_ranks, ladder)
    styles = style.variant_styles(ladder.rungs)
    columns = columns_of(len(panels))
    bounded = any(row["percent_of_roof"] and "bound" in row["roof"] for row in over_ranks)
    page = Page("all_reduce: bus bandwidth against array size",
                caption(run, (resource for _, resource in panels),
                        "Bus bandwidth: 2 (p - 1) / p times the size of the array, divided by the "
                        "time, where p is the number of ranks. Named: of the rungs that reduce "
                        "exactly, the first one and those nearest to the fastest, and the nearest "
                        "library. "
                        + ("Dashed: the memory bound of one host, the bandwidth bound of several. "
                           if bounded else "") + "Bars: 95 % confidence."),
                len(panels), columns, panel_height=2.5 if len(panels) == columns else 2.1,
                share_y=True, finding=against_library(ladder, over_ranks),
                y_label="bus bandwidth (GB/s)")
    for axes, ((direction, resource), found) in zip(page.panels(), sorted(panels.items())):
        exact = [row for row in found if is_exact(row)]
        # `bytes` counts the array twice, for reading and writing.
        draw_lines(page, axes, exact, names, styles, lambda row: row["bytes"] / 2,
                   lambda row: row["busbw_gbytes_per_s"])
        draw_bound(axes, found)
        axes.set_yscale("log")
        label_sizes(axes, found, MOST_LABELS[columns])
        hosts = {row.get("hosts") or 1 for row in found} - {1}
        where = [f"{max(hosts)} hosts"] if hosts else []
        axes.set_title(", ".join(t for t in (direction, resource.label, *where) if t), loc="left")
        axes.set_xlabel("array size")
    plain_log(page.axes[0, 0].yaxis)
    return page
