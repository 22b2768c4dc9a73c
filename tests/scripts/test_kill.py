"""kill.py notices each way in which a measurement or a training can lose something."""

import os
import sys

import pytest

from tests.commands import ROOT, execute

# A measurement that writes a row in 10 ms; BUG breaks it.
BENCH = """
import os, sys, time
from pathlib import Path
bug = os.environ.get("BUG")
run = Path(sys.argv[sys.argv.index("--out") + 1])
run.mkdir(exist_ok=True)
resumed = (run / "environment.json").exists()
(run / "environment.json").write_text("{}")
summary, samples = run / "summary.csv", run / "samples.csv"
def lines(path):
    return path.read_text().splitlines()[1:] if path.exists() else []
done = [line.split(",")[3] for line in lines(summary)]
if bug == "anew" and resumed:
    done = []
    summary.unlink(missing_ok=True)
columns = "primitive,direction,suite,problem,variant,threads,ranks,cache,status"
for path, header in ((summary, columns), (samples, "problem,variant,threads")):
    if not path.exists():
        path.write_text(header + "\\n")
for i in range(30):
    if f"p{i}" in done and bug != "twice":
        continue
    time.sleep(0.01)
    if bug != "samples" or not resumed:
        with open(samples, "a") as file:
            file.write(f"p{i},serial,1\\n")
    with open(summary, "a") as file:
        whole = bug != "torn" or not resumed
        file.write(f"m,f,s,p{i},serial,1,1,warm,ok\\n" if whole else f"m,f,p{i}\\n")
    if bug == "stops" and resumed and i == 20:
        break
if bug == "fails" and resumed:
    sys.exit("cannot go on")
"""


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
    def call(kind, *options, bug="", command=(), **expected):
        program = tmp_path / "program.py"
        program.write_text(BENCH if kind == "bench" else TRAINING)
        return execute(sys.executable, ROOT / "scripts/kill.py", kind, "--kills", "8", "--folder",
                       tmp_path / "folder", *options, "--",
                       *(command or (sys.executable, program)),
                       env=os.environ | {"BUG": bug}, **expected)
    return call


def test_a_run_that_loses_nothing_passes(kill):
    done = kill("bench")
    assert done.stdout.startswith("8 kills, ") and "of 30 rows: none lost, none torn" in done.stdout


def test_a_sound_training_passes(kill):
    done = kill("train")
    assert "8 kills" in done.stdout and f"{sum(range(60)):016x}" in done.stdout


@pytest.mark.parametrize(("kind", "bug", "reason"), [
    ("bench", "anew", "finished rows were lost"), ("bench", "twice", "is there twice"),
    ("bench", "torn", "a row is torn"), ("bench", "stops", "rows are missing"),
    ("bench", "samples", "has no samples"),
    ("bench", "fails", "exit status 1; stderr:\ncannot go on"),
    ("train", "weights", "The weights after "),
    ("train", "random", "Without a kill, the weights are "),
    ("train", "anew", "The newest checkpoint was of step "),
    ("train", "torn", ": torn: 3 of 4 bytes"),
    ("train", "fails", "exit status 1; stderr:\ncannot go on"),
    ("train", "temporary", "Temporary files are left: x.tmp-1"),
    ("train", "no line", "Expected one line 'weights fnv1a HASH', found 0"),
    ("train", "status", "exit status 3")])
def test_each_loss_is_named(kill, kind, bug, reason):
    kill(kind, bug=bug, status=1, error=reason)


@pytest.mark.parametrize("bug", ["weights", "random"])
def test_weights_that_need_not_be_the_same_are_not_compared(kill, bug):
    done = kill("train", "--any-weights", bug=bug)
    assert "not compared" in done.stdout


@pytest.mark.parametrize("options,command,reason", [
    (("--kills", "0"), ("x",), "--kills: expected 1 or more"),
    (("--one-rank",), ("x",), "mpirun"),
    ((), ("x", "--out=run"), "--out: added")])
def test_wrong_arguments_are_explained(kill, options, command, reason):
    kill("train", *options, command=command, status=2, error=reason)


def test_a_program_that_is_missing_is_named(kill):
    kill("train", command=("/no/such/program",), status=1, error="/no/such/program")
