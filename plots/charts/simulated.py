"""Charts of `make simulate`: predicted training steps on clusters, and the fastest all-reduce there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullLocator

from plots import style
from plots.charts.all_reduce import map_colour
from plots.numbers import binary_size, microseconds
from plots.page import Page, plain_log
from plots.ratios import geometric_mean
from plots.reading import Row, Run, read_json

LIBRARY = "mpi_allreduce"
MOST_RUNGS = 7


def is_rung(row: Row) -> bool:
    """Not a library, and not the choice among the rungs."""
    return row["technique"] != "vendor" and row["variant"] != "by_model"


def draw(run: Run) -> Iterator[tuple[str, Page | str]]:
    if run.scaling is not None:
        for scaling in ("weak", "strong"):
            rows = [row for row in run.scaling if row["scaling"] == scaling]
            yield f"simulated-{scaling}", draw_scaling(run, scaling, rows)
    if run.simulation is not None:
        yield "simulated-map", draw_map(run, [row for row in run.simulation
                                              if row["status"] == "ok" and row["direction"] == "mean"])


def caption(run: Run, text: str) -> str:
    about = read_json(run.folder / "simulation.json") or {}
    return f"{text}\n{about.get('simulator') or 'SimGrid'}; commit {about.get('commit') or 'unknown'}."


def notable(rows: Sequence[Row]) -> list[str]:
    """The first rung, the library, and the rungs nearest to the fastest at the most nodes."""
    most = {row["platform"]: max(r["nodes"] for r in rows if r["platform"] == row["platform"])
            for row in rows}
    large = [row for row in rows if row["nodes"] == most[row["platform"]]]
    fastest: dict[tuple, float] = {}
    for row in large:
        key = (row["platform"], row["network"])
        fastest[key] = min(fastest.get(key, math.inf), row["all_reduce_s"])
    behind = {}
    for name in dict.fromkeys(row["variant"] for row in large):
        behind[name] = geometric_mean(row["all_reduce_s"] / fastest[row["platform"], row["network"]]
                                      for row in large if row["variant"] == name)
    own = {row["variant"] for row in large if is_rung(row)}
    nearest = sorted(own, key=behind.get)[:MOST_RUNGS]
    chosen = {*nearest, LIBRARY, "gather_broadcast"}
    return [name for name in dict.fromkeys(row["variant"] for row in rows) if name in chosen]


def draw_scaling(run: Run, scaling: str, rows: Sequence[Row]) -> Page | str:
    if len({row["nodes"] for row in rows}) < 2:
        return "fewer than two numbers of nodes"
    places = list(dict.fromkeys((row["network"], row["platform"]) for row in
                                sorted(rows, key=lambda r: (r["network"], r["platform"]))))
    names = notable(rows)
    styles = style.distinct_styles({name: "vendor" if name == LIBRARY else technique
                                    for name, technique in zip(names, cycle_of(names))})
    across = len({platform for _, platform in places})
    weak = scaling == "weak"
    page = Page("data-parallel training step on simulated clusters, "
                + ("batch per node constant" if weak else "global batch constant"),
                caption(run, "One rank per node; all-reduces simulated with SimGrid's SMPI, compute "
                             "time measured on one node. The all-reduce begins after the last "
                             "gradient: nothing overlaps."
                             + (" Efficiency: compute / step." if weak else "")),
                -(-len(places) // across), across, panel_height=2.1, legend_columns=5,
                share_y=weak, legend=[styles[name].handle(name) for name in names])
    for axes, (network, platform) in zip(page.panels(), places):
        here = [row for row in rows if (row["network"], row["platform"]) == (network, platform)]
        for name in names:
            points = sorted((row for row in here if row["variant"] == name),
                            key=lambda row: row["nodes"])
            axes.plot([row["nodes"] for row in points],
                      [100 * row["efficiency"] if weak else 1e3 * row["step_s"] for row in points],
                      label=name, **styles[name].line)
        if not weak:
            axes.set_yscale("log")
            plain_log(axes.yaxis)
        else:
            axes.set_ylim(0, 102)
        axes.set_title(f"{network}, {platform}", loc="left")
        label_nodes(axes, sorted({row["nodes"] for row in here}))
    for axes in page.axes[:, 0]:
        axes.set_ylabel("efficiency (%)" if weak else "step (ms)")
    page.hide_from(len(places))
    return page


def cycle_of(names: Sequence[str]) -> list[str]:
    techniques = [technique for technique in style.COLOURS if technique != "vendor"]
    return [techniques[i % len(techniques)] for i in range(len(names))]


def label_nodes(axes: Axes, nodes: Sequence[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(nodes, [f"{count:,}" for count in nodes])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("nodes")


def draw_map(run: Run, rows: Sequence[Row]) -> Page | str:
    sizes = sorted({row["bytes"] for row in rows})
    places = sorted({(row["platform"], row["nodes"]) for row in rows})
    winners: dict[tuple, Row] = {}
    for row in rows:
        key = (row["platform"], row["nodes"], row["bytes"])
        if is_rung(row) and (
                key not in winners or row["seconds"] < winners[key]["seconds"]):
            winners[key] = row
    if not winners:
        return "no rung was simulated"
    names = sorted({row["variant"] for row in winners.values()})
    faces = {name: map_colour(i, len(names)) for i, name in enumerate(names)}
    page = Page("all_reduce on simulated clusters: the fastest rung by length and nodes",
                caption(run, "In each cell: time in us; below it, how many times faster than "
                             "MPI_Allreduce with Open MPI's choice of algorithm."),
                1, 1, panel_height=0.55 + 0.36 * len(places), legend_columns=5,
                legend=[Line2D([], [], marker="s", linestyle="none", markersize=7,
                               markeredgecolor="#666666", color=faces[name], label=name)
                        for name in names])
    axes = page.panels()[0]
    library = {(row["platform"], row["nodes"], row["bytes"]): row["seconds"]
               for row in rows if row["variant"] == LIBRARY}
    for (platform, nodes, size), row in winners.items():
        x, y = sizes.index(size), places.index((platform, nodes))
        axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=faces[row["variant"]],
                                 edgecolor="white", linewidth=1))
        theirs = library.get((platform, nodes, size))
        gain = f"\n{theirs / row['seconds']:.1f}x" if theirs else ""
        axes.text(x, y, f"{microseconds(row['seconds'])}{gain}", ha="center", va="center",
                  fontsize=6, linespacing=1.2)
    axes.set_xlim(-0.5, len(sizes) - 0.5)
    axes.set_ylim(len(places) - 0.5, -0.5)
    axes.set_xticks(range(len(sizes)), [binary_size(size) for size in sizes])
    axes.set_yticks(range(len(places)), [f"{platform}, {nodes:,} nodes" for platform, nodes in places])
    axes.grid(visible=False)
    axes.set_xlabel("length of the vector")
    return page
