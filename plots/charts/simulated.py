"""Charts of `make simulate`: predicted training steps on clusters, and the fastest all-reduce
there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from plots.charts import style
from plots.charts.all_reduce import behind_fastest
from plots.charts.figure import Page, plain_log
from plots.charts.lines import draw_lines
from plots.charts.winners import Cell, draw_winners, fastest_rows
from plots.data.names import is_rung
from plots.data.reading import Row, Run, read_json

LIBRARY = "mpi_allreduce"
MOST_RUNGS = 4


def draw(run: Run) -> Iterator[tuple[str, Page | str]]:
    if run.scaling is not None:
        for scaling in ("weak", "strong"):
            rows = [row for row in run.scaling if row["scaling"] == scaling]
            yield f"simulated-{scaling}", draw_scaling(run, scaling, rows)
    if run.simulation is not None:
        yield "simulated-map", draw_map(run, [row for row in run.simulation
                                              if row["status"] == "ok"
                                              and row["direction"] == "mean"])


def caption(run: Run, text: str) -> str:
    about = read_json(run.folder / "simulation.json") or {}
    simulator, commit = about.get("simulator") or "SimGrid", about.get("commit") or "unknown"
    return f"{text}\n{simulator}; commit {commit}."


def notable(rows: Sequence[Row]) -> list[str]:
    """The first rung, the library, and the rungs nearest to the fastest at the most nodes."""
    most = {platform: max(row["nodes"] for row in rows if row["platform"] == platform)
            for platform in {row["platform"] for row in rows}}
    behind = behind_fastest([row for row in rows
                             if row["nodes"] == most[row["platform"]] and is_rung(row)],
                            lambda row: (row["platform"], row["network"]), "all_reduce_s")
    chosen = {*sorted(behind, key=behind.get)[:MOST_RUNGS], LIBRARY, "gather_broadcast"}
    return [name for name in dict.fromkeys(row["variant"] for row in rows) if name in chosen]


def draw_scaling(run: Run, scaling: str, rows: Sequence[Row]) -> Page | str:
    if len({row["nodes"] for row in rows}) < 2:
        return "fewer than two numbers of nodes"
    places = list(dict.fromkeys((row["network"], row["platform"]) for row in
                                sorted(rows, key=lambda r: (r["network"], r["platform"]))))
    names = notable(rows)
    styles = style.distinct_styles({row["variant"]: "vendor" if row["variant"] == LIBRARY else "mpi"
                                    for row in rows})
    across = len({platform for _, platform in places})
    weak = scaling == "weak"
    page = Page("data-parallel training step on simulated clusters, "
                + ("batch per node constant" if weak else "global batch constant"),
                caption(run, "One rank per node; all-reduces simulated with SimGrid's SMPI, "
                             "compute time measured on one node. The all-reduce begins after the "
                             "last gradient: nothing overlaps."
                             " Named: the first rung, the library, and the rungs nearest to the "
                             "fastest."
                             + (" Efficiency: compute / step." if weak else "")),
                len(places), across, panel_height=2.1, share_y=weak,
                y_label="efficiency (%)" if weak else "step (ms)")
    for axes, (network, platform) in zip(page.panels(), places):
        here = [row for row in rows if (row["network"], row["platform"]) == (network, platform)]
        draw_lines(page, axes, here, names, styles, lambda row: row["nodes"],
                   lambda row: 100 * row["efficiency"] if weak else 1e3 * row["step_s"])
        if not weak:
            axes.set_yscale("log")
            plain_log(axes.yaxis)
        else:
            axes.set_ylim(0, 102)
        axes.set_title(f"{network}, {platform}", loc="left")
        label_nodes(axes, sorted({row["nodes"] for row in here}))
    return page


def label_nodes(axes: Axes, nodes: Sequence[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(nodes, [f"{count:,}" for count in nodes])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("nodes")


def draw_map(run: Run, rows: Sequence[Row]) -> Page | str:
    def cell_of(row: Row) -> Cell:
        return (row["platform"], row["nodes"]), row["bytes"]

    winners = fastest_rows(filter(is_rung, rows), cell_of, "seconds")
    if not winners:
        return "no rung was simulated"
    libraries = {cell_of(row): row for row in rows if row["variant"] == LIBRARY}
    return draw_winners("all_reduce on simulated clusters: the fastest rung by length and nodes",
                        caption(run, "In each cell: time in us; below it, how many times faster "
                                     "than MPI_Allreduce with Open MPI's choice of algorithm."),
                        winners, sorted({row["variant"] for row in winners.values()}), libraries,
                        "seconds", lambda place: f"{place[0]}, {place[1]:,} nodes")
