"""The charts and the table of simulated clusters, and the table of other communication
libraries."""

from __future__ import annotations

from pathlib import Path

import pytest

from plots.charts import draw
from plots.data.reading import load_run
from plots.tables import blocks
from run_folder import write_json
from scripts import simulate
from tests.columns import described
from tests.commands import read_csv, write_csv

RUNGS = {"gather_broadcast": ("mpi", 40.0), "ring": ("mpi", 4.0), "by_model": ("mpi", 3.0),
         "mpi_allreduce": ("vendor", 8.0), "mpi_iallreduce": ("vendor", 2.0)}


@pytest.fixture
def simulated(tmp_path: Path) -> Path:
    """The folder of a run that holds a simulation: two clusters of 64 and 256 nodes."""
    folder = tmp_path / "run/simulation"
    folder.mkdir(parents=True)
    rows, steps = [], []
    for platform in ("flat-10g", "fattree-100g"):
        for nodes in (64, 256):
            for name, (technique, milliseconds) in RUNGS.items():
                seconds = 1e-3 * milliseconds * nodes / 64
                rows.append({"platform": platform, "nodes": nodes, "variant": name,
                             "technique": technique, "direction": "mean", "problem": "mnist_cnn",
                             "bytes": 4000, "verified": "yes", "status": "ok", "seconds": seconds})
                for scaling, compute in (("weak", 0.01), ("strong", 0.01 * 64 / nodes)):
                    steps.append({"platform": platform, "nodes": nodes, "variant": name,
                                  "technique": technique, "network": "mnist_cnn",
                                  "scaling": scaling, "compute_s": compute,
                                  "all_reduce_s": seconds, "step_s": compute + seconds,
                                  "efficiency": compute / (compute + seconds)})
    for name, lines in (("simulation", rows), ("scaling", steps)):
        write_csv(folder / f"{name}.csv", lines, [column[0] for column in simulate.COLUMNS[name]])
    write_json(folder / "columns.json", tables={
        name: [dict(zip(("name", "type"), column)) for column in columns]
        for name, columns in simulate.COLUMNS.items()})
    write_json(folder / "simulation.json", simulator="SimGrid 3.32", commit="0123456789ab",
               compute={"mnist_cnn": {"seconds": 0.01}, "alexnet": {"seconds": 1}})
    return folder


def test_charts_of_a_simulation(simulated: Path):
    outcome = draw.write_all(load_run(simulated))
    names = [name for name in outcome.written if name.startswith("simulated")]
    assert names == ["simulated-weak", "simulated-strong", "simulated-map"]
    drawn = (simulated / "charts/simulated-map.svg").read_text()
    assert "fattree-100g, 256 nodes" in drawn and "2.0x" in drawn  # ring over MPI_Allreduce
    assert "mpi_iallreduce" not in drawn and "by_model" not in drawn


def test_the_fastest_rung_of_the_table_is_neither_a_library_nor_a_choice(simulated: Path):
    (simulated.parent / "summary.csv").write_text("")
    block = blocks.known_blocks(load_run(simulated.parent, ()), ())["simulation"](simulated)
    assert block is not None
    assert "SimGrid 3.32; commit 0123456789ab" in block and "mnist_cnn 10.0 ms" in block
    assert "alexnet" not in block
    lines = [line for line in block.splitlines() if line.startswith("| mnist_cnn")]
    assert len(lines) == 4 and all("`ring`" in line for line in lines)
    at_64 = next(line for line in lines if "| flat-10g | 64 |" in line)
    assert at_64.split("|")[5:10] == [" 4.00 ", " 71 % ", " 56 % ", " 20 % ", " 71 % "]


def test_without_steps_there_is_no_table(simulated: Path):
    (simulated / "scaling.csv").unlink()
    (simulated.parent / "summary.csv").write_text("")
    assert blocks.known_blocks(load_run(simulated.parent, ()), ())["simulation"](simulated) is None


def test_other_libraries_beside_our_fastest_rung(tmp_path: Path):
    folder = tmp_path / "all_reduce/peers"
    folder.mkdir(parents=True)
    (tmp_path / "summary.csv").write_text("")
    kinds = {"library": "text", "ranks": "integer", "bytes": "integer", "median_s": "number",
             "status": "text"}
    write_json(folder / "columns.json", tables={"peers_all_reduce": described(kinds)})
    times = {"stepladder shared_window_avx2": 1e-6, "stepladder shared_window_copy_avx2": 4e-6,
             "gloo": 8e-6, "MPICH": 2e-6}
    write_csv(folder / "peers_all_reduce.csv", [
        *({"library": name, "ranks": 2, "bytes": 4096, "median_s": time, "status": "ok"}
          for name, time in times.items()),
        {"library": "oneCCL", "ranks": 2, "bytes": 4096, "status": "unavailable"}], kinds)
    block = blocks.known_blocks(load_run(tmp_path, ()), ())["all-reduce-peers"](tmp_path)
    assert block is not None
    assert "**2 ranks**" in block
    assert "| 4 KiB | shared_window_avx2 | 1.00 | 2.00x | 4.00 | 0.50x |" in block.splitlines()
    assert block.splitlines()[-3:] == ["| length | gloo | MPICH |", "| --: | --: | --: |",
                                       "| 4 KiB | 8.00 | 2.00 |"]


def test_the_last_screen_names_the_rung_that_ran(simulated: Path):
    said: list[str] = []
    simulate.print_scaling(read_csv(simulated / "scaling.csv"), said.append)
    lines = [line.split() for line in said if "mnist_cnn" in line]
    assert len(lines) == 4 and {line[3] for line in lines} == {"ring"}
