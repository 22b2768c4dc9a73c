"""Replicas: all-reduce over lengths, modes by time to accuracy, scaling to simulated nodes."""

from __future__ import annotations

from typing import Any

from plots.data import network
from plots.data.names import is_rung
from plots.data.ratios import rate_bounds
from plots.data.reading import Row, Run, grouped, load_run, read_table
from plots.page import markup, svg
from plots.page.svg import Axis, Series
from plots.tables import blocks

# Folder of a published run and its title; the run itself may hold rows over ranks too.
ALL_REDUCE = (("", "All-reduce of this run"), ("all_reduce", "All-reduce on one host"),
              ("network", "All-reduce between hosts"))

LARGE = {"width": 560, "height": 300}  # of a chart: two beside each other


def replicas(run: Run) -> dict[str, Any]:
    parts = [part for name, title in ALL_REDUCE if (part := all_reduce(run, name, title))]
    return {"all_reduce": parts, "peers": markup.html(blocks.all_reduce_peers(run)),
            "modes": markup.html(blocks.training_modes(run, "modes") or blocks.training_modes(run)),
            "hosts": markup.html(blocks.training_modes(run, "modes/hosts")),
            "data_parallel": markup.html(blocks.data_parallel_peers(run)),
            "simulation": markup.html(blocks.simulation(run)), "scaling": scaling(run)}


def all_reduce(run: Run, name: str, title: str) -> dict[str, Any] | None:
    folder = run.folder / name
    if name and not (folder / "summary.csv").exists():
        return None
    here = load_run(folder, ("environment", "summary")) if name else run
    rows = network.all_reduce_rows(here) if here.summary and "hosts" in here.summary[0] else []
    lines = network.fastest(rows)
    if not lines:
        return None
    where = (here.environment or {}).get("network")
    charts = [picture
              for setting in sorted({(row["hosts"] or 1, row["ranks"] or 1) for row in rows})
              if (picture := lengths(rows, *setting))]
    return {"title": title, "where": where, "charts": charts,
            "table": markup.html_table(network.LABELS, lines, 0, "Times in us")}


def lengths(rows: list[Row], hosts: int, ranks: int) -> dict[str, Any] | None:
    """Bus bandwidth over the length of the vector: the fastest rung, the first rung, the MPI
    library."""
    here = [row for row in rows if ((row["hosts"] or 1), (row["ranks"] or 1)) == (hosts, ranks)
            and row["busbw_gbytes_per_s"] and not row["message_share"]]
    kinds = {"our fastest rung": [row for row in here if is_rung(row)],
             "gather_broadcast": [row for row in here if row["variant"] == "gather_broadcast"],
             "MPI library": [row for row in here if row["technique"] == "vendor"]}
    series = []
    for (name, found), technique in zip(kinds.items(), ("mpi", "serial", "vendor")):
        best = {size: max(rows_of_size, key=lambda row: row["busbw_gbytes_per_s"])
                for size, rows_of_size in sorted(grouped(found, network.vector_bytes).items())}
        if len(best) > 1:
            points = [(size, row["busbw_gbytes_per_s"]) for size, row in best.items()]
            band = [(size, *rate_bounds(row, row["busbw_gbytes_per_s"]))
                    for size, row in best.items()]
            series.append(Series(name, svg.technique_colour(technique), points, band))
    if not series:
        return None
    x = Axis.around("bytes", [p[0] for s in series for p in s.points], True)
    y = Axis.around("bus bandwidth, GB/s",
                    [v for s in series for _, low, high in s.band for v in (low, high)], True)
    title = f"{ranks} ranks" + (f" on {hosts} hosts" if hosts > 1 else "")
    return {"label": title, "svg": svg.chart(f"All-reduce, {title}: bus bandwidth over "
                                             "length", series, x, y, **LARGE),
            "legend": svg.legend(series)}


def scaling(run: Run) -> list[dict[str, Any]]:
    """Efficiency of a training step with a constant batch per node, per simulated cluster and
    network."""
    rows = [row for row in read_table(run.folder / "simulation/scaling.csv", [])
            or run.scaling or []
            if row["scaling"] == "weak"]
    pictures = []
    for place in sorted({(row["network"], row["platform"]) for row in rows}):
        here = [row for row in rows if (row["network"], row["platform"]) == place]
        best = {nodes: max(row["efficiency"] for row in rungs) for nodes, rungs
                in grouped(filter(is_rung, here), lambda row: row["nodes"]).items()}
        series = [Series("our fastest rung", svg.technique_colour("mpi"),
                         sorted(best.items()))] if best else []
        for name, technique in (("gather_broadcast", "serial"), ("mpi_allreduce", "vendor")):
            points = sorted((row["nodes"], row["efficiency"])
                            for row in here if row["variant"] == name)
            if points:
                series.append(Series(name, svg.technique_colour(technique), points))
        if not series or len(best) < 2:
            continue
        x = Axis.around("nodes", [p[0] for s in series for p in s.points], True)
        pictures.append({"label": ", ".join(place), "svg": svg.chart(
            f"Efficiency on simulated {place[1]}, {place[0]}", series, x,
            Axis("efficiency", 0.0, 1.05), **LARGE),
            "legend": svg.legend(series)})
    return pictures
