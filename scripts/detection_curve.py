"""Draws docs/detection.svg: how often `stepladder compare` finds a slowdown of one rung, by its
size.

    detection_curve.py [--program build/stepladder]

Recorded runs of one build (tests/compare) are compared in pairs. In the second run of a pair the
times of one rung are multiplied. A slowdown counts as found if the row, or the rung over its
problems, is called slower.
"""

import argparse
import csv
import io
import itertools
import json
import lzma
import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SIZES = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40)  # percent
RUNGS = ("packed_avx512", "openmp_avx512", "direct_avx512")
LINES = {("rung", 1): "rung over its problems, 1 thread",
         ("rung", 2): "rung over its problems, 2 threads",
         ("row", 1): "single row, 1 thread", ("row", 2): "single row, 2 threads"}


def recorded_runs():
    return [list(csv.DictReader(io.StringIO(lzma.open(path).read().decode())))
            for path in sorted((ROOT / "tests/compare").glob("*.csv.xz"))]


def write_run(folder, rows, columns, rung=None, factor=1.0):
    folder.mkdir()
    with open(folder / "samples.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        for row in rows:
            slow = {"seconds": float(row["seconds"]) * factor} if row["variant"] == rung else {}
            writer.writerow({**row, **slow})
    return folder


def sample_columns():
    """The columns of samples.csv, which docs/results-format.md lists."""
    table = (ROOT / "docs/results-format.md").read_text().split("## samples.csv")[1].split("## ")[0]
    return re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)


def count_found(program, columns):
    runs = recorded_runs()
    pairs = list(itertools.combinations(range(len(runs)), 2))[::5]
    found, total = Counter(), Counter()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        before = [write_run(folder / f"run{i}", rows, columns) for i, rows in enumerate(runs)]
        for size, rung, (a, b) in itertools.product(SIZES, RUNGS, pairs):
            after = write_run(folder / f"{size}-{rung}-{a}-{b}", runs[b], columns, rung,
                              1 + size / 100)
            done = subprocess.run([program, "compare", before[a], after, "--json"],
                                  capture_output=True, text=True, check=False)
            result = json.loads(done.stdout)
            for kind in ("row", "rung"):
                for row in result[f"{kind}s"]:
                    if row["variant"] == rung:
                        total[kind, row["threads"], size] += 1
                        found[kind, row["threads"], size] += row["verdict"] == "slower"
    return found, total


def draw(found, total, path):
    import matplotlib  # pylint: disable=import-outside-toplevel  (the tests have no use for it)
    matplotlib.use("svg")
    import matplotlib.pyplot as plt  # pylint: disable=import-outside-toplevel
    plt.rcParams["svg.fonttype"] = "none"
    plt.rcParams["svg.hashsalt"] = "stepladder"
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for (kind, threads), label in LINES.items():
        shares = [100 * found[kind, threads, size] / max(1, total[kind, threads, size])
                  for size in SIZES]
        axes.plot(SIZES, shares, "-o" if kind == "rung" else "--s",
                  color="#0072b2" if threads == 1 else "#d55e00", markersize=4, label=label)
    axes.axhline(95, color="#777777", linewidth=0.8, linestyle=":")
    axes.set(xlabel="slowdown put into one rung (%)", ylabel="found (%)", ylim=(-3, 103),
             title="A slowdown of a rung shows over its problems long before it shows in a "
                   "single row")
    axes.title.set_fontsize(10)
    axes.grid(alpha=0.3)
    figure.legend(fontsize=8, loc="outside lower center", ncols=2)
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "build/stepladder")
    options = parser.parse_args()
    found, total = count_found(options.program, sample_columns())
    for key in sorted(total):
        print(*key, f"{found[key]} of {total[key]}")
    draw(found, total, ROOT / "docs/detection.svg")


if __name__ == "__main__":
    main()
