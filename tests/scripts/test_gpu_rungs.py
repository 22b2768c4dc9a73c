"""scripts/gpu_rungs.py: each CUDA rung in a process of its own, and what becomes of it.

The program is a fake that lists rungs as the real one does and verifies them as a test says.
"""

import os
import runpy
import signal
import subprocess
import sys
import time

import pytest

from tests.commands import ROOT, check, ends, wait_until, write_script

SCRIPT = ROOT / "scripts/gpu_rungs.py"
LIST = {"matmul": ["naive", "tf32_wgmma", "warp_tile", "cublas"], "max_pool": ["naive", "cudnn"],
        "layers": ["bias"], "all_reduce": ["staged", "nccl"]}
VENDOR = ("cublas", "cudnn", "nccl")
OWN = ["matmul naive", "matmul warp_tile", "max_pool naive", "layers bias", "matmul tf32_wgmma"]

PROGRAM = """#!/bin/bash
here=$(dirname "$0")
if [[ $1 == list ]]; then
  [[ $* == "list --place cuda --full" ]] || exit 2
  cat "$here/list"
  exit
fi
echo "$*" >>"$here/calls"
if [[ -e $here/$2-$4 ]]; then source "$here/$2-$4"; fi
"""


class Project:
    """A folder with the fake program and suites for all primitives but layers."""

    def __init__(self, folder):
        self.root = folder
        write_script(folder / "stepladder", PROGRAM)
        (folder / "bench/suites").mkdir(parents=True)
        for primitive in ("matmul", "max_pool", "all_reduce"):
            (folder / f"bench/suites/{primitive}.csv").touch()
        self.list()

    def list(self, passed=(), outdated=()):
        """The rungs of LIST; the named ones were verified, with this or an earlier source."""
        text = ""
        for primitive, rungs in LIST.items():
            text += f"{primitive}\n"
            for rung in rungs:
                name = f"{primitive} {rung}"
                status = ("verified on NVIDIA H200, 2026-01-31" if name in passed
                          else "changed since it was verified on NVIDIA H200, 2026-01-31"
                          if name in outdated else "not verified on a device yet")
                technique = "vendor" if rung in VENDOR else "cuda"
                text += f"  {rung:22} {technique:8} fp32  [on naive] adds something\n"
                text += f"  {'':22} unavailable: no CUDA device\n  {'':22} {status}\n"
        (self.root / "list").write_text(text)

    def behaves(self, rung, body):
        (self.root / rung.replace(" ", "-")).write_text(body)

    def start(self, *options):
        (self.root / "calls").write_text("")
        cores = set(sorted(os.sched_getaffinity(0))[:2])  # one process at a time
        return subprocess.Popen(
            [sys.executable, SCRIPT, "./stepladder", "--logs", "logs/verify", *options],
            cwd=self.root, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=lambda: os.sched_setaffinity(0, cores))

    def run(self, *options, status=0):
        process = self.start(*options)
        stdout, stderr = process.communicate(timeout=60)
        return check(subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr),
                     status, lines=0)

    def verified(self):
        """The rungs that were verified, in this order."""
        calls = [line.split() for line in (self.root / "calls").read_text().splitlines()]
        return [f"{words[1]} {words[3]}" for words in calls]


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def outcomes(result):
    """{rung: (outcome, the rest of the line)}"""
    lines = [line.split(maxsplit=3) for line in result.stdout.splitlines()[:-1]]
    return {f"{words[1]} {words[2]}": (words[0], *words[3:]) for words in lines}


def test_all_own_rungs_pass(project):
    result = project.run()
    assert outcomes(result) == dict.fromkeys(OWN, ("ok",))
    assert result.stdout.endswith("\n5 of 5 rungs passed\n")


def test_those_with_wgmma_come_last_and_no_rung_of_a_library(project):
    project.run()
    assert project.verified() == OWN


def test_the_command_of_a_rung(project):
    project.run("--suite", "layers", "--random", "7", "--record", "run/verified.json")
    calls = (project.root / "calls").read_text().splitlines()
    assert ("verify matmul --variant warp_tile --place cuda --suite layers --random 7 "
            "--record run/verified.json") in calls
    assert ("verify layers --variant bias --place cuda --random 7 "  # it has no suites
            "--record run/verified.json") in calls


@pytest.mark.parametrize("body, outcome", [
    ("exit 0", ("ok",)),
    ("echo 'FAILED matmul forward naive (3x3): 2 wrong elements'; exit 1",
     ("FAILED", "FAILED matmul forward naive (3x3): 2 wrong elements")),
    ("echo working; exit 1", ("FAILED", "exit status 1")),
    ("echo 'stepladder: the device is lost' >&2; exit 3",
     ("BROKEN", "stepladder: the device is lost")),
    ("kill -SEGV $$", ("BROKEN", "exit status -11")),
    ("echo 'stepladder: nothing was verified: no' >&2; exit 4",
     ("NONE", "stepladder: nothing was verified: no")),
    ("printf 'FAILED \\377\\n'; exit 1", ("FAILED", "FAILED \ufffd"))])
def test_outcomes(project, body, outcome):
    project.behaves("matmul naive", body)
    result = project.run(status=0 if outcome[0] in ("ok", "NONE") else 1)
    assert outcomes(result) == dict.fromkeys(OWN, ("ok",)) | {"matmul naive": outcome}
    passed = 5 if outcome == ("ok",) else 4
    assert result.stdout.endswith(f"\n{passed} of 5 rungs passed\n")


@pytest.mark.parametrize("body", ["exec sleep 60", "trap '' INT; sleep 60 & wait; sleep 60"])
def test_a_rung_that_does_not_end_is_cut_and_the_others_are_verified(project, body):
    project.behaves("matmul naive", body)
    begun = time.monotonic()
    result = project.run("--each", "1", "--primitive", "matmul", status=1)
    assert time.monotonic() - begun < 15
    assert outcomes(result)["matmul naive"] == ("CUT", "after 1.0 s")
    assert outcomes(result)["matmul warp_tile"] == ("ok",)


def test_a_rung_has_time_to_record_when_it_is_cut(project):
    project.behaves("matmul naive", "trap 'echo recorded; exit 130' INT; sleep 60 & wait")
    project.run("--each", "1", "--primitive", "matmul", "--variant", "naive", status=1)
    assert "recorded" in (project.root / "logs/verify/matmul-naive.log").read_text()


def test_only_rungs_that_have_not_passed(project):
    project.list(passed=["matmul naive", "layers bias", "matmul cublas"],
                 outdated=["matmul warp_tile"])
    result = project.run("--new")
    assert project.verified() == ["matmul warp_tile", "max_pool naive", "matmul tf32_wgmma"]
    assert result.stdout.endswith("3 of 3 rungs passed\n")
    project.run()
    assert project.verified() == OWN
    project.list(passed=OWN)
    result = project.run("--new")
    assert result.stdout == "0 of 0 rungs passed\n"


@pytest.mark.parametrize("options, verified", [
    (["--primitive", "matmul"], ["matmul naive", "matmul warp_tile", "matmul tf32_wgmma"]),
    (["--primitive", "layers,max_pool"], ["max_pool naive", "layers bias"]),
    (["--primitive", "layers, max_pool"], ["max_pool naive", "layers bias"]),
    (["--primitive", "layers max_pool"], ["max_pool naive", "layers bias"]),
    (["--variant", "naive"], ["matmul naive", "max_pool naive"]),
    (["--variant", "warp*,*_wgmma,cu*"], ["matmul warp_tile", "matmul tf32_wgmma"]),
    (["--primitive", "matmul", "--variant", "b*"], []),
    (["--primitive", "", "--variant", ""], OWN),
    (["--primitive", "all_reduce"], [])])
def test_filters(project, options, verified):
    project.run(*options)
    assert project.verified() == verified


def test_an_unknown_primitive_is_refused(project):
    result = project.run("--primitive", "matmul,matmull", status=1)
    assert "matmull" in result.stdout.splitlines()[-1]
    assert project.verified() == []


def test_a_tool_runs_the_program(project):
    write_script(project.root / "check memory",
                 '#!/bin/bash\nshift\necho "========= COMPUTE-SANITIZER"\n"$@"\n'
                 'if [[ $* == *warp_tile* ]]; then\n'
                 '  echo "========= Invalid __global__ read of size 4 bytes"\n'
                 '  echo "========= ERROR SUMMARY: 1 error"; exit 9\nfi\n')
    result = project.run("--tool", "'./check memory' --strict", "--primitive", "matmul", status=1)
    assert outcomes(result) == {
        "matmul naive": ("ok",), "matmul tf32_wgmma": ("ok",),
        "matmul warp_tile": ("FAILED", "========= Invalid __global__ read of size 4 bytes")}
    assert sorted(project.verified()) == sorted(rung for rung in OWN if "matmul" in rung)


def test_the_output_and_the_lines_are_kept(project):
    project.behaves("matmul naive", "echo 12 problems; echo careful >&2")
    result = project.run("--random", "3", "--primitive", "matmul,layers")
    logs = project.root / "logs"
    assert (logs / "verify/matmul-naive.log").read_text() == (
        "+ ./stepladder verify matmul --variant naive --place cuda --random 3\n"
        "12 problems\ncareful\n")
    assert len(list((logs / "verify").iterdir())) == 4
    assert (logs / "verify.txt").read_text().splitlines() == result.stdout.splitlines()[:-1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_has_ended_and_ends_the_rest(project, number):
    project.behaves("max_pool naive", 'echo $$ >"$here/hanging"; exec sleep 60')
    process = project.start()
    file = project.root / "hanging"
    assert wait_until(lambda: file.exists() and file.read_text())
    process.send_signal(number)
    process.communicate(timeout=10)
    assert process.returncode != 0
    assert (project.root / "logs/verify.txt").read_text().splitlines() == [
        "ok      matmul naive", "ok      matmul warp_tile"]
    hanging = int(file.read_text())
    if not ends(hanging, 3):
        os.kill(hanging, signal.SIGKILL)
        pytest.fail("the rung still runs")


@pytest.fixture
def six_cores(project, monkeypatch):
    """Runs the script in this process, as if it had cores 0 to 5."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)))
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cores: os.environ.update(
        CORES=",".join(map(str, sorted(cores)))))
    monkeypatch.chdir(project.root)
    monkeypatch.setenv("CORES", "")

    def run(*options):
        (project.root / "calls").write_text("")
        monkeypatch.setattr(sys, "argv", [
            str(SCRIPT), "./stepladder", "--logs", "logs/verify", *options])
        return runpy.run_path(str(SCRIPT))["main"]()
    return run


def test_several_run_at_once(project, six_cores):
    # Each of the first three waits for the other two.
    for rung in OWN[:3]:
        project.behaves(rung, """touch "$here/running-$2-$4"
for ((i = 0; i < 100; ++i)); do
  running=("$here"/running-*); ((${#running[@]} < 3)) || exit 0
  sleep 0.1
done
exit 1""")
    assert six_cores() == 0


def test_a_line_is_printed_as_its_rung_ends(project, six_cores, capsys):
    project.behaves("matmul naive", """for ((i = 0; i < 50; ++i)); do
  [[ ! -e $here/ended ]] || exit 0
  sleep 0.1
done""")
    project.behaves("matmul tf32_wgmma", 'touch "$here/ended"')
    assert six_cores() == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown.index("ok      matmul naive") > shown.index("ok      matmul warp_tile")
