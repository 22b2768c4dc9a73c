"""Prints the results of a GPU run on one screen: gpu_table.py RUN

For each rung and suite: geometric means, over the problems, of its gain over the first CUDA rung
and over the vendor's library at the same precision, and its best rate. For each network: the
training step beside PyTorch's.
"""

import csv
import json
import math
import sys
from pathlib import Path


def rows_of(path):
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def geometric_mean(values):
    return f"{math.exp(sum(map(math.log, values)) / len(values)):.2f}x" if values else "-"


def verdicts(path):
    """{(primitive, variant): "verified" or "FAILED"}, from verified.json."""
    if not path.exists():
        return {}
    record = json.loads(path.read_text())
    found = {}
    for kind, word in (("verified", "verified"), ("failed", "FAILED")):
        for file in record[kind]:  # kernels/PRIMITIVE/…/VARIANT.cu
            found[Path(file).parts[1], Path(file).stem] = word
    return found


def best_rate(rows):
    gflops = max((float(row["gflops_per_s"] or 0) for row in rows), default=0)
    gbytes = max((float(row["gbytes_per_s"] or 0) for row in rows), default=0)
    compute_bound = gflops > 4 * gbytes
    return f"{gflops / 1e3:.1f} TFLOP/s" if compute_bound else f"{gbytes / 1e3:.2f} TB/s"


def problem_of(row):
    return row["suite"], row["direction"], row["problem"]


def print_ladder(primitive, rows, verified):
    ok = [row for row in rows if row["status"] == "ok"]
    # The row of a variant that cannot run on this machine has no suite.
    suites = list(dict.fromkeys(row["suite"] for row in rows if row["suite"]))
    first = {}
    for row in ok:
        if not row["builds_on"] and row["technique"] == "cuda":
            first.setdefault(problem_of(row), float(row["median_s"]))
    print(f"\n{primitive}  (over the first rung, over the vendor at equal precision, best rate)")
    print(f"  {'':24} {'':5} {'':9}" + "".join(f"{suite:>30}" for suite in suites))
    for variant in dict.fromkeys(row["variant"] for row in rows):
        own = [row for row in ok if row["variant"] == variant]
        precision = next(row["precision"] for row in rows if row["variant"] == variant)
        cells = []
        for suite in suites:
            here = [row for row in own if row["suite"] == suite]
            gains = [first[problem_of(row)] / float(row["median_s"]) for row in here
                     if problem_of(row) in first]
            over_vendor = [float(row["speedup_vs_vendor"]) for row in here
                           if row["speedup_vs_vendor"]]
            cells.append(f"{geometric_mean(gains):>8}{geometric_mean(over_vendor):>8}"
                         f"{best_rate(here) if here else '-':>14}")
        verdict = verified.get((primitive, variant), "-")
        print(f"  {variant:24} {precision:5} {verdict:9}" + "".join(cells))
    for row in [row for row in rows if row["status"] == "failed"][:5]:
        print(f"  FAILED {row['variant']} {row['direction']} {row['problem']}: {row['reason']}")


def totals(rows, use):
    return [row for row in rows if row["layer"] == "total" and row["use"] == use]


def print_steps(own, peers):
    ours = {(row["network"], use): float(row["median_s"]) for use in ("cuda", "cuda_tf32")
            for row in totals(peers, use) + totals(own, use)}
    theirs = totals(peers, "pytorch")
    if not ours and not theirs:
        return
    print("\ntraining step, ms  (in brackets: PyTorch's time over ours of the same precision)")
    for network in dict.fromkeys([*(name for name, _ in ours),
                                  *(row["network"] for row in theirs)]):
        fp32, tf32 = ours.get((network, "cuda")), ours.get((network, "cuda_tf32"))
        cells = [f"ours {fp32 * 1e3:.3f}" if fp32 else "ours not measured"]
        if tf32:
            cells.append(f"ours in TF32 {tf32 * 1e3:.3f}")
        for row in theirs:
            if row["network"] == network:
                seconds = float(row["median_s"])
                same = tf32 if row["mode"].endswith("_tf32") else fp32
                ratio = f" ({seconds / same:.1f}x)" if same else ""
                cells.append(f"{row['mode']} {seconds * 1e3:.3f}{ratio}")
        print(f"  {network:12} " + ", ".join(cells))


def main(run):
    verified = verdicts(run / "verified.json")
    rows = [row for row in rows_of(run / "summary.csv") if row["device"] != "cpu"]
    for primitive in dict.fromkeys(row["primitive"] for row in rows):
        print_ladder(primitive, [row for row in rows if row["primitive"] == primitive], verified)
    print_steps(rows_of(run / "step.csv"), rows_of(run / "peers/step.csv"))
    failed = [" ".join(name) for name, verdict in verified.items() if verdict == "FAILED"]
    print(f"\nverified in this run: {len(verified) - len(failed)} rungs; "
          f"FAILED: {', '.join(failed) or 'none'}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    main(Path(sys.argv[1]))
