"""kill_training.py notices each way in which a training can lose something."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/kill_training.py"

# A training that adds up steps; BUG breaks it.
TRAINING = """
import os, sys, time
from pathlib import Path
bug = os.environ.get("BUG")
folder = Path(sys.argv[sys.argv.index("--checkpoint") + 1])
name = lambda step: folder / f"step-{step:06}-12345678.checkpoint"
files = lambda: sorted(folder.glob("step-*.checkpoint"))
folder.mkdir(exist_ok=True)
step = weights = 0
if "--resume" in sys.argv and files():
    if bug == "fails":
        sys.exit("cannot go on")
    if bug == "torn":
        print(f"{files()[-1]}: torn: 3 of 4 bytes", file=sys.stderr)
    if bug != "anew":
        step, weights = map(int, files()[-1].read_text().split())
    if bug == "weights":
        weights += 1
if bug == "random":
    weights = time.time_ns()
while step < 60:
    time.sleep(0.005)
    step, weights = step + 1, weights + step
    if step % 3 == 0:
        temporary = folder / f"{name(step).name}.tmp-{os.getpid()}"
        temporary.write_text(f"{step} {weights}")
        temporary.rename(name(step))
        for file in files():
            if file not in (name(step - 3), name(step)):
                file.unlink()
if bug != "temporary":
    for file in folder.glob("*.tmp-*"):
        file.unlink()
else:
    (folder / "x.tmp-1").touch()
if bug != "no line":
    print(f"weights fnv1a {weights:016x}")
sys.exit(3 if bug == "status" else 0)
"""


@pytest.fixture
def kill(tmp_path):
    training = tmp_path / "training.py"
    training.write_text(TRAINING)

    def call(*options, bug="", command=()):
        return subprocess.run(
            [sys.executable, SCRIPT, "--kills", "10", "--folder", tmp_path / "folder", *options, "--",
             *(command or (sys.executable, training))],
            capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "BUG": bug})
    return call


def test_a_sound_training_passes(kill):
    done = kill()
    assert done.returncode == 0, done.stderr
    assert "10 kills" in done.stdout and f"{sum(range(60)):016x}" in done.stdout


@pytest.mark.parametrize("bug,reason", [
    ("weights", "The weights after "), ("random", "Without a kill, the weights are "),
    ("anew", "The newest checkpoint was of step "), ("torn", ": torn: 3 of 4 bytes"),
    ("fails", "exit status 1; stderr:\ncannot go on"), ("temporary", "Temporary files are left: x.tmp-1"),
    ("no line", "Expected one line 'weights fnv1a HASH', found 0"), ("status", "exit status 3")])
def test_a_broken_training_is_noticed(kill, bug, reason):
    done = kill(bug=bug)
    assert done.returncode == 1
    assert reason in done.stderr


@pytest.mark.parametrize("bug", ["weights", "random"])
def test_weights_that_need_not_be_the_same_are_not_compared(kill, bug):
    done = kill("--any-weights", bug=bug)
    assert done.returncode == 0, done.stderr
    assert "not compared" in done.stdout


@pytest.mark.parametrize("options,command,reason", [
    (("--kills", "0"), ("x",), "--kills: expected 1 or more"), (("--one-rank",), ("x",), "mpirun"),
    ((), ("x", "--out=run"), "--out: added")])
def test_wrong_arguments_are_explained(kill, options, command, reason):
    done = kill(*options, command=command)
    assert done.returncode == 2
    assert reason in done.stderr


def test_a_program_that_is_missing_is_named(kill):
    done = kill(command=("/no/such/program",))
    assert done.returncode == 1
    assert "/no/such/program" in done.stderr
