"""Compares two builds that run in turns, on the same problems: what make ab calls.

    ab.py --base COMMIT|FOLDER [--program build/stepladder] [--limit 120] [--out FOLDER] \\
        -- matmul --suite quick …

Each turn is a process of its own: it finds its pages anew, and the machine is the same for the two
processes of a pair. Who comes first alternates. What follows -- are arguments of `stepladder
bench`. The repetitions go to OUT/old and OUT/new, with the number of the pair as their visit;
`stepladder compare --paired` judges them.
Exit status: that of compare (1: slower, or a rung that fails now; 2: the two cannot be compared, or
wrong arguments).
"""

import argparse
import csv
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAIRS = 20          # wanted in the time
LEAST_PAIRS = 5     # that compare needs
# Seconds a row, of two pairs that show how long a process takes and do not count.
FIRST_BUDGET = 0.01
MOST_BUDGET = 0.2
VISITS = 1.5  # a row takes about that many times its budget
THRESHOLD = 2  # percent
SIGNIFICANCE = 0.02  # of any false alarm
JUDGED = ["--threshold", str(THRESHOLD), "--significance", str(SIGNIFICANCE)]


def fail(message, status=2):  # 1 would look like a slowdown
    print(f"make ab: {message}", file=sys.stderr)
    sys.exit(status)


def built(base):
    """The program of a build folder, or of a commit, which is built in build/ab unless it is
    there."""
    for folder in (Path(base), Path(base) / "build"):
        if os.access(folder / "stepladder", os.X_OK) and (folder / "stepladder").is_file():
            return folder / "stepladder"
    if Path(base).is_dir():
        fail(f"{base} holds no program stepladder; expected a build folder or a commit")
    found = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "--verify", "--quiet", f"{base}^{{commit}}"],
        capture_output=True, text=True)
    if found.returncode != 0:
        fail(f"{base} is neither a commit nor a build folder")
    tree = ROOT / "build/ab" / found.stdout.strip()[:12]
    program = tree / "build/stepladder"
    if not program.exists():
        print(f"Building {base} in {tree.relative_to(ROOT)}, once.", file=sys.stderr)
        tree.mkdir(parents=True, exist_ok=True)
        archive = subprocess.Popen(
            ["git", "-C", ROOT, "archive", found.stdout.strip()], stdout=subprocess.PIPE)
        unpacked = subprocess.run(["tar", "-x", "-C", tree], stdin=archive.stdout)
        if archive.wait() != 0 or unpacked.returncode != 0:
            fail(f"the files of {base} cannot be unpacked in {tree}")
        log = tree / "build.log"
        with open(log, "w") as output:
            done = subprocess.run(["scripts/build.sh", "release", "build", "stepladder"], cwd=tree,
                                  stdout=output, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            fail(f"{base} does not build; the output is in {log}")
    return program


def measure(program, arguments, budget, folder, ceilings=None):
    """One process. Returns its seconds. It takes the ceilings of another one, which matter to no
    ratio."""
    start = time.monotonic()
    folder.mkdir()
    if ceilings is not None:
        shutil.copy(ceilings, folder)
    resume = ["--resume"] if ceilings is not None else []
    done = subprocess.run(
        [program, "bench", *arguments, "--budget", f"{budget:.4f}", "--out", folder, *resume],
        capture_output=True, text=True)
    # 1: a rung failed, which its row says.
    if done.returncode not in (0, 1) or not (folder / "samples.csv").exists():
        fail(
            f"{program} bench {' '.join(arguments)} ended with status {done.returncode}: "
            f"{done.stderr.strip()[-400:]}"
        )
    return time.monotonic() - start


def repetitions(folder, pair):
    """Rows of samples.csv as visit `pair`. A row of which hardly any repetition was undisturbed
    keeps all."""
    with open(folder / "samples.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    by_key = {}
    for row in rows:
        key = tuple(
            row[name]
            for name in ("primitive", "direction", "problem", "variant", "threads", "ranks"))
        by_key.setdefault(key, []).append(row)
    for found in by_key.values():
        quiet = [row for row in found if not row["marked"]]
        for number, row in enumerate(quiet if len(quiet) > 1 else found):
            yield {**row, "marked": "", "visit": pair, "repetition": pair * 10_000 + number}


def budget_of(limit, seconds, rows):
    """Of a row, so that PAIRS pairs fit the time; `seconds` took a process with FIRST_BUDGET."""
    beside = seconds - rows * FIRST_BUDGET * VISITS
    wanted = (limit / (2 * PAIRS) - beside) / (rows * VISITS)
    return min(max(wanted, FIRST_BUDGET), MOST_BUDGET)


def run_in_turns(programs, arguments, limit, scratch):
    """The repetitions of both sides, and the folders of the first pair."""
    first = {side: scratch / f"{side}-first" for side in programs}
    start = time.monotonic()
    for side, program in programs.items():
        measure(program, arguments, FIRST_BUDGET, first[side])
    ceilings = {side: folder / "ceilings.json" for side, folder in first.items()}
    seconds = max(
        measure(program, arguments, FIRST_BUDGET, scratch / f"{side}-second", ceilings[side])
        for side, program in programs.items())
    with open(first["new"] / "summary.csv", newline="") as file:
        summary = list(csv.DictReader(file))
    rows = sum(row["status"] == "ok" for row in summary)
    failed = [row for row in summary if row["status"] == "failed"]
    if rows == 0 and failed:
        fail(f"FAILED: all of {len(failed)} rows; {failed[0]['variant']}: {failed[0]['reason']}", 1)
    if rows == 0:
        fail(f"no row was measured by bench {' '.join(arguments)}")
    budget = budget_of(limit, seconds, rows)
    found = {side: [] for side in programs}
    pair = 0
    while True:
        sides = list(programs) if pair % 2 == 0 else list(reversed(programs))
        before = time.monotonic()
        for side in sides:
            folder = scratch / f"{side}-{pair}"
            measure(programs[side], arguments, budget, folder, ceilings[side])
            found[side] += repetitions(folder, pair)
            shutil.rmtree(folder)
        pair += 1
        now = time.monotonic()
        if sys.stderr.isatty():
            print(f"\r{pair} pairs, {max(0, limit - (now - start)):.0f} s left ", end="",
                  file=sys.stderr, flush=True)
        if pair >= LEAST_PAIRS and now - start + (now - before) > limit:
            break
    if sys.stderr.isatty():
        print("\r", end="", file=sys.stderr)
    print(
        f"{pair} pairs of processes in {time.monotonic() - start:.0f} s, {rows} rows, "
        f"{budget:.3f} s for each"
    )
    if time.monotonic() - start > 1.2 * limit:
        print(
            f"{LEAST_PAIRS} pairs took longer than {limit:g} s: name fewer rungs (VARIANT) or "
            "problems (SUITE)"
        )
    return found, first


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", required=True)
    parser.add_argument("--program", default=str(ROOT / "build/stepladder"))
    parser.add_argument("--limit", type=float, default=120, help="seconds")
    parser.add_argument("--out", default="", help="folder that keeps the repetitions")
    parser.add_argument("bench", nargs="+")
    options = parser.parse_args()
    if not (options.limit > 0 and math.isfinite(options.limit)):
        fail(f"LIMIT is {options.limit:g}; expected seconds above 0")
    out = Path(options.out) if options.out else None
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        fail(f"{out} is there already; expected a new folder")
    programs = {"old": built(options.base).resolve(), "new": Path(options.program).resolve()}
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        found, first = run_in_turns(programs, options.bench, options.limit, scratch)
        merged = out or scratch / "runs"
        for side in programs:
            folder = merged / side
            folder.mkdir(parents=True)
            with open(first["new"] / "samples.csv", newline="") as file:
                columns = next(csv.reader(file))
            with open(folder / "samples.csv", "w", newline="") as file:
                writer = csv.DictWriter(file, columns, restval="", extrasaction="ignore",
                                        lineterminator="\n")
                writer.writeheader()
                writer.writerows(found[side])
            shutil.copy(first[side] / "summary.csv", folder / "summary.csv")
        command = [programs["new"], "compare", "old", "new", "--paired", *JUDGED]
        return subprocess.run(command, cwd=merged).returncode


if __name__ == "__main__":
    sys.exit(main())
