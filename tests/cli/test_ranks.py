"""A rank that dies, hangs or disagrees ends the run with its number; finished rows stay and the run
can be resumed."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conftest import QUICK, wait_for_rows
from tests.commands import ends, read_csv, write_script

SUITE = "suite,name,count,source\n"


@pytest.fixture
def mpirun(mpirun):
    return mpirun(3)


@pytest.fixture
def gradients(tmp_path):
    """One small problem, and then so many that the run lasts until a rank is killed."""
    path = tmp_path / "gradients.csv"
    path.write_text(SUITE + "tiny,first,16,\n" + "".join(f"tiny,n{i},{1000 + i},\n"
                                                         for i in range(200)))
    return path


def process_of_rank(rank, of_run):
    """The rank's process among those of the session of mpirun."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().split(b"\0")
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if str(of_run).encode() in line and f"OMPI_COMM_WORLD_RANK={rank}".encode() in variables:
            return int(folder.name)
    raise AssertionError(f"rank {rank} has no process")


def start_and_wait_for_rows(stepladder, mpirun, gradients, out, **environment):
    process = stepladder.start("bench", "all_reduce", "--variant", "ring,mpi_allreduce",
                               "--suite-file", gradients, *QUICK, "--out", out, launcher=mpirun,
                               environment=environment)
    try:
        wait_for_rows(out, process)
    except AssertionError:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return process


@pytest.mark.parametrize("cause", [signal.SIGKILL, signal.SIGSTOP])
def test_a_lost_rank_is_named_and_the_run_can_be_resumed(stepladder, mpirun, gradients, tmp_path,
                                                         cause):
    out = tmp_path / "run"
    process = start_and_wait_for_rows(stepladder, mpirun, gradients, out,
                                      STEPLADDER_RANK_TIMEOUT="5")
    lost = process_of_rank(2, out)
    os.kill(lost, cause)
    start = time.monotonic()
    try:
        _, errors = process.communicate(timeout=40)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    assert time.monotonic() - start < 30
    assert process.returncode != 0
    if cause == signal.SIGKILL:
        assert "process rank 2 " in errors and "signal 9" in errors
    else:
        assert "for rank 2 (" in errors and f"process {lost} is stopped" in errors
    assert ends(lost)  # mpirun kills it, and does not wait for the kernel to be done with it
    kept = read_csv(out / "summary.csv")
    assert kept and all(row["status"] == "ok" for row in kept)
    gradients.write_text(SUITE + "tiny,first,16,\ntiny,last,5,\n")
    done = stepladder("bench", "all_reduce", "--variant", "ring,mpi_allreduce", "--suite-file",
                      gradients, *QUICK, "--out", out, "--resume", launcher=mpirun)
    assert " kept from before" in done.stdout
    rows = read_csv(out / "summary.csv")
    assert rows[:len(kept)] == kept and {"first", "last"} <= {row["problem"] for row in rows}


def test_ranks_do_not_share_the_first_core(stepladder, mpirun, gradients, tmp_path):
    out = tmp_path / "run"
    process = start_and_wait_for_rows(stepladder, [*mpirun[:-2], "--bind-to", "none", "-np", "3"],
                                      gradients, out)
    try:
        cores = set.union(*(os.sched_getaffinity(process_of_rank(rank, out)) for rank in range(3)))
    finally:
        process.terminate()
        process.communicate(timeout=15)
    assert cores == os.sched_getaffinity(0)


def test_another_command_line_on_one_rank_is_an_error(stepladder, mpirun, gradients, tmp_path):
    same = ["bench", "all_reduce", "--suite-file", str(gradients), "--out", str(tmp_path / "run")]
    launcher = [*mpirun[:-1], "2", str(stepladder.path), *same, ":", "-np", "1"]
    done = stepladder(*same, "--seed", "2", launcher=launcher, timeout=20, status=2,
                      error="--seed 2")
    assert done.stderr.count("stepladder: rank 2 has another command line than rank 0") == 1
    assert not (tmp_path / "run").exists()


def test_another_suite_on_one_rank_is_an_error(stepladder, mpirun, gradients, tmp_path):
    """As on a host with another checkout: rank 1 finds another file of the same name."""
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder, count in zip(folders, (16, 17)):
        folder.mkdir()
        (folder / "suite.csv").write_text(SUITE + f"tiny,first,16,\ntiny,second,{count},\n")
    part = [
        str(stepladder.path), "bench", "all_reduce", "--suite-file", "suite.csv", "--out",
        str(tmp_path / "run")]
    launcher = [
        *mpirun[:-2], "-np", "1", "-wdir",
        str(folders[0]), *part, ":", "-np", "1", "-wdir",
        str(folders[1])]
    stepladder(*part[1:], launcher=launcher, timeout=20, status=2,
               error=("rank 1 has another list of problems than rank 0", "second"))
    assert not (tmp_path / "run").exists()


@pytest.fixture
def in_folders(tmp_path):
    """A program that starts another one in a folder of its rank, as hosts with other files do."""
    for rank in range(3):
        (tmp_path / str(rank)).mkdir()
    return write_script(tmp_path / "in_folder_of_rank.sh",
                        '#!/bin/sh\ncd "$(dirname "$0")/$OMPI_COMM_WORLD_RANK" && exec "$@"\n')


def says_once(reason, done):
    """One line of the run is of this program, and names rank and reason."""
    line, = [line for line in done.stderr.splitlines() if line.startswith("stepladder: ")]
    return line.startswith(f"stepladder: {reason}")


# The limit is that of a rank that hangs: these runs must end long before it.
@pytest.mark.parametrize(("command", "file"), [
    (["bench", "all_reduce", "--suite-file", "suite.csv"], "suite.csv"),
    (["verify", "all_reduce", "--suite-file", "suite.csv"], "suite.csv"),
    (["train", "--mode", "synchronous", "--steps", "1", "--data", "generated",
      "--network", "net.json"], "net.json"),
    (["step", "--network", "net.json"], "net.json"),
    (["plan", "--network", "net.json"], "net.json"),
    (["plan", "--bytes", "--network", "net.json"], "net.json"),
    # CLI11 looks for it.
    (["step", "--network", "net.json", "--tuned", "tuned.json"], "tuned.json"),
])
def test_a_file_missing_on_one_rank_ends_the_run(stepladder, mpirun, network, tmp_path, in_folders,
                                                 command, file):
    for rank in range(3):
        folder = tmp_path / str(rank)
        (folder / "suite.csv").write_text(SUITE + "tiny,first,16,\n")
        (folder / "tuned.json").write_text("{}")
        shutil.copy(network, folder / "net.json")
    (tmp_path / "1" / file).unlink()
    done = stepladder(*command, launcher=[*mpirun, in_folders], timeout=45, status="not 0")
    assert any(
        line.startswith("stepladder: rank 1 of 3: ") and file in line
        for line in done.stderr.splitlines())


def test_a_name_that_one_rank_does_not_know_ends_the_run(stepladder, mpirun, tmp_path, in_folders):
    for rank, name in enumerate(("second", "first", "second")):
        (tmp_path / str(rank) / "suite.csv").write_text(SUITE + f"tiny,{name},16,\n")
    done = stepladder("bench", "all_reduce", "--suite-file", "suite.csv", "--problem", "second",
                      launcher=[*mpirun, in_folders], timeout=45, status=1)
    assert says_once("rank 1 of 3: unknown problem of all_reduce 'second'", done), done.stderr


@pytest.mark.parametrize("arguments", [
    ["bench", "all_reduce", "--variant", "rong"],
    ["trian"],
    ["step", "--inter", "x"],
    ["train", "--network", "mlp", "--mode", "synchronos"]])
def test_an_error_on_all_ranks_is_printed_once(stepladder, mpirun, arguments):
    alone = stepladder(*arguments, status=2).stderr
    done = stepladder(*arguments, launcher=mpirun, timeout=45, status=2, error=alone.strip())
    assert done.stderr.count(alone.splitlines()[0]) == 1


def test_another_network_on_one_rank_is_an_error(stepladder, mpirun, network, tmp_path, in_folders):
    for rank, learning_rate in enumerate(("0.1", "0.1", "0.2")):
        (tmp_path / str(rank) / "net.json").write_text(
            network.read_text().replace("0.1", learning_rate))
    done = stepladder("train", "--network", "net.json", "--mode", "synchronous", "--data",
                      "generated", "--steps", "1", "--out", tmp_path / "run",
                      launcher=[*mpirun, in_folders], timeout=45, status=2)
    assert says_once("rank 2 has another net.json than rank 0", done), done.stderr


def test_a_limit_that_is_no_number_is_an_error(stepladder, mpirun, gradients):
    stepladder("bench", "all_reduce", "--suite-file", gradients, launcher=mpirun,
               environment={"STEPLADDER_RANK_TIMEOUT": "soon"}, timeout=20, status="not 0",
               error="STEPLADDER_RANK_TIMEOUT=soon: expected seconds")


ONE_THREAD = """
int PMPI_Init_thread(int *, char ***, int, int *);
int MPI_Init_thread(int *count, char ***arguments, int required, int *provided) {
  int error = PMPI_Init_thread(count, arguments, required, provided);
  *provided = 0;
  return error;
}
"""


def test_a_library_that_allows_one_thread_only_is_refused(stepladder, mpirun, preloaded):
    stepladder("train", "--network", "mlp", "--mode", "synchronous,overlap", "--data", "generated",
               "--steps", "1", launcher=[*mpirun, "-x", f"LD_PRELOAD={preloaded(ONE_THREAD)}"],
               timeout=45, status="not 0",
               error="this MPI library allows calls from one thread only")
