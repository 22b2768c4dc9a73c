"""bench/peers/all_reduce.py with fakes in place of libraries and launchers, and once with MPICH."""

import csv
import json
import shutil
from pathlib import Path

import pytest

import all_reduce
from plots.data import reading
from tests.commands import ROOT, ends, execute, write_script

# A launcher that prints what a program would: the options and the program come first.
FAKE_PROGRAM = """#!/bin/sh
echo "version,2,Fake MPI v7.8.9  ident: 1"
for count in "$@"; do last=$count; done
echo "16,yes,5,{seconds}"
echo "1024,{verified},5,{seconds}"
exit {status}
"""


@pytest.fixture
def peers(monkeypatch):
    def own(options, counts, folder, cores):
        found = {"ring": {count: (True, 0, [1e-6 * count] * 3) for count in counts},
                 "one_bit": {count: (True, 0, [1e-9] * 3) for count in counts}}
        missing = {("tree", count): ("unavailable", "needs four ranks") for count in counts}
        return found, missing, {"one_bit"}

    monkeypatch.setattr(all_reduce, "run_stepladder", own)
    monkeypatch.setattr(all_reduce, "version_of", lambda program: "0.1.0")
    return all_reduce


@pytest.fixture
def fake(tmp_path):
    def make(peers, name, seconds="2e-06;4e-06;3e-06", verified="yes", status=0):
        path = write_script(tmp_path / f"{name}.sh", FAKE_PROGRAM.format(
            seconds=seconds, verified=verified, status=status))
        return peers.Library(name, run=[str(path)], variables={"PINNED": "1"})
    return make


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "all_reduce.csv"
    path.write_text("suite,name,count,source\nsweep,b,1024,\nsweep,a,16,\nlayers,c,5,\n")
    return path


@pytest.fixture
def run(peers, main_of, monkeypatch, tmp_path, suite):
    def call(libraries, *options):
        monkeypatch.setattr(peers, "libraries", lambda *arguments: libraries)
        return main_of(peers, "--suite-file", suite, "--rounds", "3", "--build",
                       tmp_path / "build", *options)
    return call


def rows_of(out):
    rows = reading.read_table(out / "peers_all_reduce.csv", [])
    return {(row["library"], row["count"]): row for row in rows}


def test_each_library_has_a_row_for_each_size_with_the_median_of_all_rounds(peers, run, fake):
    status, _, out = run([fake(peers, "A"), fake(peers, "B", seconds="5e-06;5e-06")])
    assert status == 0
    rows = rows_of(out)
    row = rows["A", 1024]
    assert (row["version"], row["ranks"], row["bytes"], row["repetitions"]) == ("7.8.9", 2, 4096, 9)
    assert (row["median_s"], row["ci_low_s"], row["ci_high_s"]) == (3e-6, 2e-6, 4e-6)
    assert (row["verified"], row["status"]) == ("yes", "ok")
    assert row["command"].startswith("env PINNED=1 ") and row["command"].endswith(" 1024")
    assert rows["B", 16]["median_s"] == 5e-6
    assert rows["stepladder ring", 16]["median_s"] == 1.6e-5
    assert rows["stepladder one_bit", 16]["status"] == "ok"  # although the table leaves it out
    assert rows["stepladder tree", 16]["reason"] == "needs four ranks"
    header = next(csv.reader((out / "peers_all_reduce.csv").open()))
    assert header == ["library", "version", "ranks", "count", "bytes", "median_s", "ci_low_s",
                      "ci_high_s", "repetitions", "verified", "status", "reason", "command"]
    samples = list(csv.DictReader((out / "peers_all_reduce_samples.csv").open()))
    assert {s["round"] for s in samples} == {"1", "2", "3"}


def test_every_round_begins_with_another_library(peers, run, fake, monkeypatch):
    order = []
    real = peers.run_library

    def run_library(library, *rest):
        order.append(library.name)
        return real(library, *rest)

    monkeypatch.setattr(peers, "run_library", run_library)
    run([fake(peers, "A"), fake(peers, "B"), fake(peers, "C")])
    assert order == ["A", "B", "C", "B", "C", "A", "C", "A", "B"]


def test_what_is_not_installed_is_a_row_with_the_reason(peers, run, fake):
    missing = peers.Library("Missing", unavailable="pip could not install it")
    broken = peers.Library("Broken", compile=[["sh", "-c", "echo mpi.h: no such file >&2; exit 1"]])
    status, shown, out = run([missing, broken, fake(peers, "A")])
    assert status == 0
    rows = rows_of(out)
    assert rows["Missing", 16]["status"] == "unavailable"
    assert rows["Missing", 16]["reason"] == "pip could not install it"
    assert "does not compile: mpi.h: no such file" in rows["Broken", 1024]["reason"]
    assert rows["Missing", 16]["median_s"] is None
    assert "unavailable: Missing: pip could not install it" in shown


def test_a_program_that_hangs_is_ended_with_its_ranks(peers, run, tmp_path):
    hanging = write_script(tmp_path / "hanging.sh", f"""#!/bin/sh
        echo "16,yes,5,2e-06"
        sleep 1000 &
        echo $! > {tmp_path}/rank
        wait""")
    status, _, out = run([peers.Library("Hanging", run=[str(hanging)])], "--timeout", "0.5")
    row = rows_of(out)["Hanging", 1024]
    assert (status, row["status"], row["reason"]) == (1, "failed", "not finished after 0.5 s")
    assert ends((tmp_path / "rank").read_text().strip())


def test_a_wrong_result_and_a_failing_program_have_no_time(peers, run, fake):
    status, shown, out = run([fake(peers, "Wrong", verified="no"), fake(peers, "Broken", status=3)])
    rows = rows_of(out)
    assert status == 1
    assert rows["Wrong", 16]["status"] == "ok"
    assert (rows["Wrong", 1024]["status"], rows["Wrong", 1024]["verified"]) == ("failed", "no")
    assert rows["Wrong", 1024]["median_s"] is None
    assert rows["Broken", 16]["status"] == "ok"  # printed before the program failed
    assert "FAILED Wrong: wrong result" in shown


def test_a_size_that_a_program_did_not_reach_has_its_exit_status(peers, run, fake, suite):
    with suite.open("a") as file:
        file.write("sweep,d,2048,\n")
    status, _, out = run([fake(peers, "A", status=3)])
    assert status == 1
    assert rows_of(out)["A", 2048]["reason"].startswith("exit status 3")


def test_the_table_names_the_fastest_of_each_size(run, peers, fake):
    _, shown, _ = run([fake(peers, "A"), fake(peers, "B", seconds="5e-06")])
    lines = {"".join(line.split()[:2]): line for line in shown.splitlines()}
    assert lines["64B"].split()[2:] == ["3", "5", "16", "A"]
    assert lines["4KiB"].split()[2:] == ["3", "5", "1024", "A"]


def test_the_columns_of_a_run_that_is_there_already_are_kept(run, peers, fake, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/columns.json").write_text('{"schema_version": 1, "tables": {"step": []}}')
    _, _, out = run([fake(peers, "A")])
    assert json.loads((out / "columns.json").read_text())["tables"].keys() == {
        "step", "peers_all_reduce", "peers_all_reduce_samples"}
    with pytest.raises(SystemExit, match="holds these peers already"):
        run([fake(peers, "A")])


def test_an_unknown_suite_is_an_error(run):
    with pytest.raises(SystemExit, match="has no suite 'nothing'"):
        run([], "--suite", "nothing")


def test_libraries_that_are_absent_have_reasons(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "environment/libraries/oneccl").mkdir(parents=True)
    (tmp_path / "environment/libraries/oneccl/unavailable").write_text("2 GB\n")
    found = all_reduce.libraries(tmp_path / "environment/libraries", tmp_path, 2, 2)
    reasons = {library.name: library.unavailable for library in found}
    assert reasons["oneCCL"] == "2 GB"
    assert reasons["MPICH (system)"] == "not installed (Debian: mpich libmpich-dev)"
    assert all(reasons.values()) and len(reasons) == 7


def test_a_real_library_is_verified_and_measured(tmp_path):
    """MPICH, two ranks."""
    for tool in ("mpicc.mpich", "mpirun.mpich"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool} on this machine (Debian: mpich libmpich-dev)")
    found = all_reduce.libraries(tmp_path, tmp_path, 2, 1)
    library = next(one for one in found if one.name == "MPICH (system)")
    all_reduce.build_library(library)

    class options:
        cache, repetitions, budget, timeout = 2**16, 5, 0.005, 60

    version, results, reason = all_reduce.run_library(library, [1, 1000, 100000], options)
    assert reason == "" and version[0].isdigit()
    assert results.keys() == {1, 1000, 100000}
    for verified, iterations, seconds in results.values():
        assert verified and iterations >= 1 and 2 <= len(seconds) <= 5 and min(seconds) > 0


def test_the_source_compiles_without_warnings(tmp_path):
    if shutil.which("mpicc") is None:
        pytest.skip("no MPI compiler on this machine")
    execute("mpicc", "-Wall", "-Wextra", "-Werror", "-O3", ROOT / "bench/peers/all_reduce_mpi.c",
            "-o", tmp_path / "program")


def test_commands_name_no_folder_of_this_machine(peers, monkeypatch):
    monkeypatch.setenv("PATH", "/of/this/machine")
    here = Path.cwd()
    library = peers.Library("mpi", run=[f"{here}/bin/mpirun", "-np", "2"],
                            variables={"PATH": f"{here}/bin:$PATH", "A": "b c"})
    assert library.command([4]) == 'env PATH="bin:$PATH" \'A=b c\' bin/mpirun -np 2 4'
    assert library.environment()["PATH"] == f"{here}/bin:/of/this/machine"
