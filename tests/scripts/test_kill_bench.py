"""kill_bench.py notices each way in which a run can lose something."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/kill_bench.py"

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
for path, header in ((summary, "primitive,direction,suite,problem,variant,threads,ranks,cache,status"),
                     (samples, "problem,variant,threads")):
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
        file.write(f"m,f,s,p{i},serial,1,1,warm,ok\\n" if bug != "torn" or not resumed else f"m,f,p{i}\\n")
    if bug == "stops" and resumed and i == 20:
        break
if bug == "fails" and resumed:
    sys.exit("cannot go on")
"""


def kill(tmp_path, bug=None):
    program = tmp_path / "bench.py"
    program.write_text(BENCH)
    return subprocess.run([sys.executable, SCRIPT, "--kills", "8", "--", sys.executable, program], capture_output=True,
                          text=True, timeout=120, check=False, env={**os.environ, **({"BUG": bug} if bug else {})})


def test_a_run_that_loses_nothing_passes(tmp_path):
    done = kill(tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("8 kills, ") and "of 30 rows: none lost, none torn" in done.stdout


@pytest.mark.parametrize(("bug", "reason"), [
    ("anew", "finished rows were lost"), ("twice", "is there twice"), ("torn", "a row is torn"),
    ("stops", "rows are missing"), ("samples", "has no samples"), ("fails", "exit status 1: cannot go on")])
def test_each_loss_is_named(tmp_path, bug, reason):
    done = kill(tmp_path, bug)
    assert done.returncode == 1
    assert reason in done.stderr
