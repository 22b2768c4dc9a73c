"""Measures inference in stepladder, PyTorch and ONNX Runtime, in turns, with the same weights and
images, on the same threads.

Every round measures each configuration once, in processes of their own. Before the timing the
logits of PyTorch and ONNX Runtime must agree with the fp64 reference that `stepladder infer
--export` writes. Written after each measurement, to OUT:

    peers_inference.csv   medians over the rounds; what fails is a row with the reason
    columns.json          names and types of the columns
    environment.json      machine, commit, versions, number of rounds

README.md explains the columns.
"""

import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from shared import (
    answer_of,
    described,
    interval,
    last_line,
    machine_of,
    numbers_of,
    write_columns,
    write_environment,
    write_rows,
)

HERE = Path(__file__).resolve().parent
COLUMNS = {"peers_inference": {
    "network": "text", "use": "text", "mode": "text", "batch": "integer", "threads": "integer",
    "rounds": "integer", "median_s": "number", "ci_low_s": "number", "ci_high_s": "number",
    "p90_s": "number", "p99_s": "number", "samples_per_s": "number", "ratio": "number",
    "ratio_ci_low": "number", "ratio_ci_high": "number", "status": "text", "reason": "text"}}
TIMES = ("median_s", "p90_s", "p99_s", "samples_per_s")
OURS = ("best", "vendor")
PEERS = (("pytorch", "eager"), ("pytorch", "compile"), ("onnxruntime", ""))


def run_stepladder(program, network, batches, threads, seconds, export):
    """(use, batch): the times of one round, or the reason that there are none; and the machine."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        done = subprocess.run(
            [program, "infer", "--network", network, "--batch", ",".join(map(str, batches)),
             "--threads", str(threads), "--use", ",".join(OURS), "--split", "inside",
             "--budget", str(seconds), "--export", export, "--out", out],
            capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if not (out / "inference.csv").exists():
            raise RuntimeError(last_line(done.stderr))
        with (out / "inference.csv").open(newline="") as file:
            totals = [row for row in csv.DictReader(file) if row["layer"] == "total"]
        machine = machine_of(out)
    return {(row["use"], int(row["batch"])):
            {name: float(row[name]) for name in TIMES} if row["status"] == "ok" else row["reason"]
            for row in totals}, machine


def run_peer(file, network, use, mode, batches, threads, seconds, export):
    """Batch: the times of one round; and the version of the framework."""
    result = answer_of(
        [sys.executable, HERE / "inference_peer.py", network, "--framework", mode or use,
         "--file", file, "--export", export, "--batch", ",".join(map(str, batches)),
         "--threads", str(threads), "--seconds", str(seconds)], threads)
    return ({int(batch): times_of(latencies, int(batch))
             for batch, latencies in result["latencies"].items()}, {use: result["version"]})


def times_of(latencies, batch):
    """Median and percentiles (nearest rank) of requests that follow each other."""
    ordered = sorted(latencies)

    def percentile(percent):
        return ordered[max(0, -(-percent * len(ordered) // 100) - 1)]

    return {"median_s": statistics.median(ordered), "p90_s": percentile(90),
            "p99_s": percentile(99), "samples_per_s": batch * len(ordered) / sum(ordered)}


def rows_of(configurations, times, failed):
    """Medians over the rounds so far. `ratio`: latency / that of best in the same round."""
    rows = []
    for key in configurations:
        network, use, mode, batch, threads = key
        row = dict(zip(COLUMNS["peers_inference"], (network, use, mode, batch, threads)))
        rounds = times.get(key, {})
        if key in failed:
            rows.append(row | {"status": "failed", "reason": failed[key]})
        elif rounds:
            medians = [one["median_s"] for one in rounds.values()]
            row |= {name: statistics.median(one[name] for one in rounds.values())
                    for name in TIMES}
            row |= {"rounds": len(rounds), "status": "ok"}
            row["ci_low_s"], row["ci_high_s"] = interval(medians)
            own = times.get((network, OURS[0], "", batch, threads), {})
            ratios = [one["median_s"] / own[number]["median_s"]
                      for number, one in rounds.items() if number in own]
            if use != OURS[0] and ratios:
                row["ratio"] = statistics.median(ratios)
                row["ratio_ci_low"], row["ratio_ci_high"] = interval(ratios)
            rows.append(row)
    return rows


def write(out, rows, rounds, about):
    write_environment(out, about | {"rounds": rounds})
    write_rows(out / "peers_inference.csv", COLUMNS["peers_inference"], rows)


def print_rows(rows):
    print("milliseconds of a request (median, 99th percentile), and median / that of best")
    for row in rows:
        name = f"  {row['network']:10} {row['use']:11} {row['mode']:8} batch {row['batch']:<5}"
        if row["status"] == "failed":
            print(f"{name} {row['threads']} threads  FAILED: {row['reason']}")
            continue
        low, high = row.get("ratio_ci_low"), row.get("ratio_ci_high")
        ratio = f"{row['ratio']:6.2f}x ({low:.2f} to {high:.2f})" if "ratio" in row else ""
        print(f"{name} {row['threads']} threads {1e3 * row['median_s']:9.3f} "
              f"{1e3 * row['p99_s']:9.3f}  {ratio}".rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/stepladder")
    parser.add_argument("--file", default="bench/networks.json")
    parser.add_argument("--networks", default="mlp,mnist_cnn,cifar_cnn")
    parser.add_argument("--batch", default="1,8,64")
    parser.add_argument("--threads", default=f"1,{len(os.sched_getaffinity(0))}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="time of one measurement")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if (options.out / "peers_inference.csv").exists():
        raise SystemExit(f"{options.out}: holds a run already; choose another folder with --out")
    networks = options.networks.split(",")
    described(options.file, networks)
    batches = numbers_of("--batch", options.batch)
    threads = numbers_of("--threads", options.threads)
    options.out.mkdir(parents=True, exist_ok=True)
    write_columns(options.out, COLUMNS)

    configurations = [(network, use, mode, batch, count)
                      for network in networks for count in threads for batch in batches
                      for use, mode in (*((use, "") for use in OURS), *PEERS)]
    times, failed, about = {}, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1, options.rounds + 1):
            for network in networks:
                for count in threads:
                    measure_once(options, network, batches, count, number,
                                 Path(folder) / network, times, failed, about)
                    write(options.out, rows_of(configurations, times, failed), number, about)
    rows = rows_of(configurations, times, failed)
    print_rows(rows)
    print(f"\n{options.out / 'peers_inference.csv'}")
    return 1 if failed else 0


def measure_once(options, network, batches, count, number, export, times, failed, about):
    """One round of one network on one number of threads, into `times` or `failed`."""
    def say(use):
        print(f"peers: round {number} of {options.rounds}, {network}, {use}, {count} threads",
              file=sys.stderr, flush=True)

    say("stepladder")
    try:
        own, machine = run_stepladder(options.program, network, batches, count, options.seconds,
                                      export)
        about |= machine
    except RuntimeError as error:
        own = {(use, batch): str(error) for use in OURS for batch in batches}
    for (use, batch), found in own.items():
        key = (network, use, "", batch, count)
        if isinstance(found, str):
            failed[key] = found
        else:
            times.setdefault(key, {})[number] = found
    for use, mode in PEERS:
        keys = {batch: (network, use, mode, batch, count) for batch in batches}
        if failed.keys() & set(keys.values()):
            continue
        say(f"{use} {mode}".rstrip())
        try:
            found, version = run_peer(options.file, network, use, mode, batches, count,
                                      options.seconds, export)
        except RuntimeError as error:
            failed.update(dict.fromkeys(keys.values(), str(error)))
            continue
        about |= version
        for batch, one in found.items():
            times.setdefault(keys[batch], {})[number] = one


if __name__ == "__main__":
    sys.exit(main())
