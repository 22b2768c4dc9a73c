"""Measures the same training steps in stepladder and in PyTorch, in turns, on the same threads.

Every round measures each configuration once, in a process of its own: drift of the machine affects
all configurations equally. These files of OUT are written after each measurement, and an
interrupted run keeps them:

    tuned.csv         the rungs of use `best`, chosen once before the first round
    step.csv          medians over the rounds, with the columns of `stepladder step`
    samples.csv       one row per round
    columns.json      names and types of the columns
    environment.json  version of PyTorch, device, number of rounds

With --device cuda the steps are those of our CUDA rungs, beside PyTorch in modes eager, cuda_graph
and compile, each with and without TF32; nothing is tuned.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Columns and their types, for the CSV files and for columns.json.
COLUMNS = {
    "step": {"network": "text", "use": "text", "mode": "text", "threads": "integer",
             "ranks": "integer", "device": "text", "layer": "text", "phase": "text",
             "variant": "text", "median_s": "number", "predicted_s": "number"},
    "samples": {"network": "text", "use": "text", "mode": "text", "threads": "integer",
                "device": "text", "round": "integer", "median_s": "number"},
}
PHASES = ["forward", "backward", "update"]
# Per device, use and mode of our step with which PyTorch is compared.
OURS = {"cpu": ("best", "single"), "cuda": ("cuda", "graph")}
TF32 = "_tf32"  # suffix of PyTorch's modes that may use TF32


def tune(program, networks, threads, file):
    done = subprocess.run([program, "tune", "--network", ",".join(networks),
                           "--threads", ",".join(map(str, threads)), "--out", file])
    if done.returncode != 0:
        raise SystemExit("peers: choosing the best rungs failed; nothing was measured")


def last_line(text):
    return (text.strip().splitlines() or ["no message"])[-1]


def run_stepladder(program, network, use, threads, tuned):
    """Seconds of a step, and of its phases."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        choices = ["--tuned", tuned] if tuned else []
        done = subprocess.run([program, "step", "--network", network, "--use", use,
                               "--threads", str(threads), *choices, "--out", out],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(last_line(done.stderr))
        rows = list(csv.DictReader((out / "step.csv").open()))
    total = next(float(r["median_s"]) for r in rows if r["layer"] == "total")
    phases = {p: sum(float(r["median_s"]) for r in rows if r["phase"] == p) for p in PHASES}
    return total, phases, {}


def run_pytorch(file, network, mode, threads, device, seconds):
    places = {"OMP_NUM_THREADS": str(threads), "OMP_PLACES": "cores", "OMP_PROC_BIND": "close"}
    arithmetic = ["--tf32"] if mode.endswith(TF32) else []
    done = subprocess.run([sys.executable, HERE / "pytorch_step.py", network, "--file", file,
                           "--mode", mode.removesuffix(TF32), *arithmetic,
                           "--threads", str(threads), "--device", device,
                           "--seconds", str(seconds)],
                          capture_output=True, text=True, env=os.environ | places)
    if done.returncode != 0:
        raise RuntimeError(last_line(done.stderr))
    result = json.loads(done.stdout.splitlines()[-1])
    return (statistics.median(result["total"]), result["phases"],
            {"torch": result["torch"], "device": result["device"]})


def write_columns(out):
    tables = {name: [{"name": column, "type": kind} for column, kind in columns.items()]
              for name, columns in COLUMNS.items()}
    (out / "columns.json").write_text(
        json.dumps({"schema_version": 1, "tables": tables}, indent=1) + "\n")


def write_results(out, seconds, phases, rounds, versions):
    """Medians over the rounds so far."""
    about = {"schema_version": 1, "rounds": rounds, "pytorch": versions.get("torch"),
             "device": versions.get("device", "cpu")}
    (out / "environment.json").write_text(json.dumps(about, indent=1) + "\n")
    with (out / "step.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS["step"])
        for key, totals in seconds.items():
            network, use, mode, threads, device = key
            head = [network, use, mode, threads, 1, device]
            for phase in PHASES:
                times = [p[phase] for p in phases[key] if phase in p]  # a CUDA graph has none
                if times:
                    rows.writerow([*head, "all", phase, "", f"{statistics.median(times):.6g}", ""])
            rows.writerow([*head, "total", "total", "", f"{statistics.median(totals):.6g}", ""])


def configurations_of(networks, threads, device, descriptions):
    """(network, use, mode, threads, device) of all measurements; the slowest modes come last."""
    if device == "cuda":
        modes = [mode + arithmetic for mode in ("eager", "cuda_graph", "compile")
                 for arithmetic in ("", TF32)]
        return ([(network, "cuda", OURS[device][1], 1, "cuda") for network in networks]
                + [(network, "pytorch", mode, 1, "cuda") for mode in modes for network in networks])
    found = []
    for network in networks:
        types = {layer["type"] for layer in descriptions[network]["layers"]}
        modes = ["eager", *(["channels_last"] if "convolution" in types else []), "compile"]
        for count in threads:
            found += [(network, use, "single", count, "cpu") for use in ("best", "vendor")]
            found += [(network, "pytorch", mode, count, "cpu") for mode in modes]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/stepladder")
    parser.add_argument("--file", default="bench/networks.json")
    parser.add_argument("--networks", default="mlp,mnist_cnn,cifar_cnn")
    parser.add_argument("--threads", default=f"1,{len(os.sched_getaffinity(0))}")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0,
                        help="time of a measurement in PyTorch")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if (options.out / "step.csv").exists():
        raise SystemExit(f"{options.out}: holds a run already; choose another folder with --out")
    options.out.mkdir(parents=True, exist_ok=True)
    write_columns(options.out)

    threads = list(dict.fromkeys(int(t) for t in options.threads.split(",")))
    networks = options.networks.split(",")
    tuned = options.out / "tuned.csv" if options.device == "cpu" else None
    if tuned:
        tune(options.program, networks, threads, tuned)
    descriptions = json.loads(Path(options.file).read_text())
    configurations = configurations_of(networks, threads, options.device, descriptions)

    seconds, phases, failed, versions = {}, {}, {}, {}
    with (options.out / "samples.csv").open("w", newline="") as file:
        samples = csv.writer(file)
        samples.writerow(COLUMNS["samples"])
        for round_number in range(1, options.rounds + 1):
            for key in configurations:
                if key in failed:
                    continue
                network, use, mode, count, device = key
                print(f"peers: round {round_number} of {options.rounds}, {network}, {use} {mode}, "
                      f"{count} threads on {device}", file=sys.stderr, flush=True)
                try:
                    if use == "pytorch":
                        total, of_phases, version = run_pytorch(
                            options.file, network, mode, count, device, options.seconds)
                    else:
                        total, of_phases, version = run_stepladder(
                            options.program, network, use, count, tuned)
                except RuntimeError as error:
                    failed[key] = str(error)
                    continue
                versions |= version
                seconds.setdefault(key, []).append(total)
                phases.setdefault(key, []).append(of_phases)
                samples.writerow([*key, round_number, f"{total:.6g}"])
                file.flush()
                write_results(options.out, seconds, phases, round_number, versions)

    print(f"\nPyTorch {versions.get('torch', 'not measured')}, {options.rounds} rounds in turns; "
          "milliseconds of a step, and the ratio of medians to ours")
    use, mode = OURS[options.device]
    for network, count in dict.fromkeys((key[0], key[3]) for key in sorted(seconds)):
        own_key = (network, use, mode, count, options.device)
        own = statistics.median(seconds.get(own_key, [float("nan")]))
        for key, totals in seconds.items():
            if (key[0], key[3]) == (network, count):
                median = statistics.median(totals)
                print(f"  {network:10} {count} threads  {key[1]:8} {key[2]:15} {key[4]:4} "
                      f"{median * 1e3:9.3f} {median / own:6.2f}x")
    for key, why in failed.items():
        print(f"  FAILED {' '.join(map(str, key))}: {why}")
    print(f"\n{options.out / 'step.csv'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
