"""make bench-network: all_reduce between network namespaces, and nothing left of them
afterwards."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.commands import ROOT, check, execute, read_csv, wait_until, write_script

SCRIPT = ROOT / "scripts/run_network.py"
RUNGS = {"gather_broadcast", "ring"}


def start(program_path, **variables):
    # a test runner in the background may ignore Ctrl-C, and its children would inherit that
    def reset():
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    names = ("HOSTS", "RATE", "LATENCY", "RANKS_PER_HOST", "HOSTFILE", "SUITE", "VARIANT", "BUDGET",
             "OUT", "RESUME")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    environment.update({
        "BUILD": str(program_path.parent), **{
            name: str(value) for name, value in variables.items()}})
    return subprocess.Popen([sys.executable, SCRIPT], text=True, env=environment,
                            start_new_session=True, preexec_fn=reset, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(process, timeout=60, **expected):
    stdout, stderr = process.communicate(timeout=timeout)
    return check(subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr),
                 **expected)


@pytest.fixture
def tools(tmp_path):
    """A folder for PATH with the commands of this machine; remove one, and it is missing."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "seq", "cat", "hostname", "sleep", "mount", "ip", "tc", "unshare", "nsenter",
                 "setpriv", "mpirun"):
        if path := shutil.which(name):
            (folder / name).symlink_to(path)
    return folder


@pytest.mark.parametrize("name, value, expected", [
    ("HOSTS", "1", "a whole number from 2 to 64"),
    ("HOSTS", "many", "a whole number from 2 to 64"),
    ("RATE", "fast", "a rate such as 1gbit"),
    ("RATE", "0mbit", "a rate such as 1gbit"),
    ("LATENCY", "-1ms", "a time such as 1ms"),
    ("RANKS_PER_HOST", "1,x", "whole numbers such as 1,2"),
])
def test_a_wrong_value_is_one_sentence(program_path, tmp_path, name, value, expected):
    finish(start(program_path, **{name: value}, OUT=tmp_path / "run"), status=2,
           error=(f"{name}={value}", expected), lines=1)
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(not shutil.which("mpirun"), reason="mpirun is not on this machine")
def test_a_host_file_that_is_not_there(program_path, tmp_path):
    hosts = tmp_path / "hosts"
    finish(start(program_path, HOSTFILE=hosts), status=2, error="no such file")
    hosts.write_text("# nobody\n\n")
    finish(start(program_path, HOSTFILE=hosts), status=2, error="lists no host")


@pytest.mark.parametrize("tool, package", [("mpirun", "openmpi-bin"), ("tc", "iproute2")])
def test_a_missing_tool_is_named_with_its_package(program_path, tools, tool, package):
    if tool != "mpirun" and not (tools / "mpirun").exists():
        pytest.skip("mpirun is not on this machine")
    (tools / tool).unlink(missing_ok=True)
    finish(start(program_path, PATH=tools), status=2, error=(tool, package), lines=1)


def test_without_the_permission_it_says_what_it_needs(program_path, tools):
    for tool in ("mpirun", "ip", "tc", "nsenter", "setpriv"):
        if not (tools / tool).exists():
            pytest.skip(f"{tool} is not on this machine")
    (tools / "unshare").unlink()
    write_script(tools / "unshare", "#!/bin/sh\n"
                 "echo 'unshare: unshare failed: Operation not permitted' >&2\nexit 1\n")
    finish(start(program_path, PATH=tools), status=2,
           error=("need root", "Operation not permitted"), lines=1)


# --- real runs -----------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path, stepladder):
    """The folder of a run between namespaces. Skips where they cannot be made."""
    for tool in ("mpirun", "ip", "tc", "unshare", "nsenter", "setpriv"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not on this machine")
    if "ring" not in stepladder("list", "all_reduce").stdout or not stepladder.is_built_with("MPI"):
        pytest.skip("built without MPI")
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    trial = execute("unshare", *user, "--net", "--uts", "--mount", "sh", "-c",
                    "mount -t tmpfs tmpfs /dev/shm && "
                    "ip link add br0 type bridge && "
                    "tc qdisc add dev br0 root tbf rate 1gbit burst 256kb latency 50ms",
                    status=None)
    if trial.returncode != 0:
        pytest.skip(
            "network namespaces need CAP_SYS_ADMIN and CAP_NET_ADMIN, and a kernel with bridges "
            "and tbf: " + trial.stderr.strip())
    folder = tmp_path / "run"
    yield folder
    for process in processes_of(folder):  # of a test that failed
        os.kill(process, signal.SIGKILL)


def start_run(program_path, run, suite="layers"):
    return start(program_path, OUT=run, HOSTS=2, VARIANT=",".join(RUNGS), SUITE=suite, BUDGET=0.05)


def processes_of(run):
    """All that the script started and that still lives. A namespace without a name ends with its
    processes."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"OUT={run}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:  # it ended, or is not ours
            pass
    return found


def ranks_of(run, program_path):
    found = []
    for process in processes_of(run):
        try:
            if os.readlink(f"/proc/{process}/exe") == str(program_path):
                found.append(process)
        except OSError:
            pass
    return found


def wait_for(is_so, process):
    def is_so_or_ended():
        assert process.poll() is None or process.returncode < 0, process.communicate()
        return is_so()

    assert wait_until(is_so_or_ended, 150)


def rows_of(run):
    return read_csv(run / "summary.csv") if (run / "summary.csv").exists() else []


def assert_nothing_left(run):
    wait_until(lambda: not processes_of(run), 15)
    assert not [Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
                for process in processes_of(run)]


def test_two_hosts_measure_and_leave_nothing(program_path, run):
    done = finish(start_run(program_path, run, suite="quick"), timeout=200)
    rows = rows_of(run)
    assert {row["variant"] for row in rows} >= RUNGS
    assert all(row["status"] == "ok" and row["ranks"] == "2" and row["hosts"] == "2"
               and row["roof"] == "bandwidth_bound" for row in rows), rows
    assert json.loads((run / "environment.json").read_text())["network"] == \
        "2 hosts, 1gbit, latency 0ms, network namespaces"
    assert "fastest rung" in done.stdout.lower()
    # The rate is the rate of the link: no call beats it but for the bytes that tbf lets pass at
    # once.
    for row in rows:
        assert float(row["median_s"]) > 0.9 * (float(row["bytes"]) / 2 - 2 * 262144) / 125e6
    assert_nothing_left(run)


def test_a_killed_rank_ends_the_run_and_keeps_its_rows(program_path, run):
    process = start_run(program_path, run)
    wait_for(lambda: len(rows_of(run)) >= 2, process)
    started = time.monotonic()
    # The other rank waits, or Open MPI may name the connection that it finds broken instead of the
    # killed rank.
    other, killed = ranks_of(run, program_path)
    os.kill(other, signal.SIGSTOP)
    os.kill(killed, signal.SIGKILL)
    done = finish(process, status=1, error="signal 9")
    assert time.monotonic() - started < 15
    assert "To resume" in done.stdout + done.stderr
    assert len(rows_of(run)) >= 2
    assert_nothing_left(run)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_leaves_no_process(program_path, run, number):
    process = start_run(program_path, run)
    wait_for(lambda: len(ranks_of(run, program_path)) == 2, process)
    if number == signal.SIGINT:  # Ctrl-C reaches the whole group
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    done = finish(process, status=-number if number == signal.SIGKILL else 130)
    assert number == signal.SIGKILL or "To resume" in done.stdout
    assert_nothing_left(run)
