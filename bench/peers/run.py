"""The same training steps in stepladder and in PyTorch, in turns, on the same threads.

Every round measures each configuration once, in a process of its own; the machine's drift so hits all
alike. Writes into OUT: tuned.csv, the choices of our best, made once before; step.csv, in the columns of
`stepladder step`; samples.csv, one row for each round; environment.json, what was installed.
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
COLUMNS = ["network", "use", "mode", "threads", "ranks", "device", "layer", "phase", "variant",
           "median_s", "predicted_s"]
PHASES = ["forward", "backward", "update"]


def tune(program, networks, threads, file):
    done = subprocess.run([program, "tune", "--network", ",".join(networks), "--threads", ",".join(map(str, threads)),
                           "--out", file])
    if done.returncode != 0:
        raise SystemExit("peers: choosing the best rungs failed; nothing was measured")


def run_stepladder(program, network, use, threads, tuned):
    """Seconds of a step, and of its phases."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        done = subprocess.run([program, "step", "--network", network, "--use", use, "--threads", str(threads),
                               "--tuned", tuned, "--out", out], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        rows = list(csv.DictReader((out / "step.csv").open()))
    total = next(float(r["median_s"]) for r in rows if r["layer"] == "total")
    phases = {p: sum(float(r["median_s"]) for r in rows if r["phase"] == p) for p in PHASES}
    return total, phases, {}


def run_pytorch(file, network, mode, threads, device):
    places = {"OMP_NUM_THREADS": str(threads), "OMP_PLACES": "cores", "OMP_PROC_BIND": "close"}
    done = subprocess.run([sys.executable, HERE / "pytorch_step.py", network, "--file", file, "--mode", mode,
                           "--threads", str(threads), "--device", device],
                          capture_output=True, text=True, env=os.environ | places)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1])
    result = json.loads(done.stdout.splitlines()[-1])
    return statistics.median(result["total"]), result["phases"], {"torch": result["torch"]}


def write_results(out, seconds, phases, rounds, versions):
    """Medians over the rounds so far."""
    about = {"schema_version": 1, "rounds": rounds, "pytorch": versions.get("torch")}
    (out / "environment.json").write_text(json.dumps(about, indent=1) + "\n")
    with (out / "step.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        for key, totals in seconds.items():
            network, use, mode, threads, device = key
            head = [network, use, mode, threads, 1, device]
            for phase in PHASES:
                median = statistics.median(p[phase] for p in phases[key])
                rows.writerow([*head, "all", phase, "", f"{median:.6g}", ""])
            rows.writerow([*head, "total", "total", "", f"{statistics.median(totals):.6g}", ""])


def has_cuda():
    import torch
    return torch.cuda.is_available()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/stepladder")
    parser.add_argument("--file", default="bench/networks.json")
    parser.add_argument("--networks", default="mlp,mnist_cnn,cifar_cnn")
    parser.add_argument("--threads", default=f"1,{len(os.sched_getaffinity(0))}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if (options.out / "step.csv").exists():
        raise SystemExit(f"{options.out}: holds a run already; choose another folder with --out")
    options.out.mkdir(parents=True, exist_ok=True)

    threads = list(dict.fromkeys(int(t) for t in options.threads.split(",")))
    networks = options.networks.split(",")
    tuned = options.out / "tuned.csv"
    tune(options.program, networks, threads, tuned)
    descriptions = json.loads(Path(options.file).read_text())
    configurations = []  # (network, use, mode, threads, device)
    for network in networks:
        has_images = any(layer["type"] == "convolution" for layer in descriptions[network]["layers"])
        modes = ["eager", "channels_last", "compile"] if has_images else ["eager", "compile"]
        for count in threads:
            configurations += [(network, use, "single", count, "cpu") for use in ("best", "vendor")]
            configurations += [(network, "pytorch", mode, count, "cpu") for mode in modes]
        if has_cuda():
            configurations += [(network, "pytorch", mode, 1, "cuda") for mode in modes]

    seconds, phases, failed, versions = {}, {}, {}, {}
    with (options.out / "samples.csv").open("w", newline="") as file:
        samples = csv.writer(file)
        samples.writerow(["network", "use", "mode", "threads", "device", "round", "median_s"])
        for round_number in range(1, options.rounds + 1):
            for key in configurations:
                if key in failed:
                    continue
                network, use, mode, count, device = key
                print(f"peers: round {round_number} of {options.rounds}, {network}, {use} {mode}, "
                      f"{count} threads on {device}", file=sys.stderr, flush=True)
                try:
                    if use == "pytorch":
                        total, of_phases, version = run_pytorch(options.file, network, mode, count, device)
                    else:
                        total, of_phases, version = run_stepladder(options.program, network, use, count,
                                                                     tuned)
                except RuntimeError as error:
                    failed[key] = str(error)
                    continue
                versions |= version
                seconds.setdefault(key, []).append(total)
                phases.setdefault(key, []).append(of_phases)
                samples.writerow([*key, round_number, f"{total:.6g}"])
                file.flush()
            write_results(options.out, seconds, phases, round_number, versions)

    print(f"\nPyTorch {versions.get('torch', 'not measured')}, {options.rounds} rounds in turns; milliseconds "
          "of a step, and the ratio of medians to best")
    for network, count in ((n, t) for n in networks for t in threads):
        best = statistics.median(seconds.get((network, "best", "single", count, "cpu"), [float("nan")]))
        for key, totals in seconds.items():
            if key[0] == network and (key[3] == count and key[4] == "cpu" or count == 1 and key[4] == "cuda"):
                median = statistics.median(totals)
                print(f"  {network:10} {count} threads  {key[1]:8} {key[2]:13} {key[4]:4} {median * 1e3:9.3f} "
                      f"{median / best:6.2f}x")
    for key, why in failed.items():
        print(f"  FAILED {' '.join(map(str, key))}: {why}")
    print(f"\n{options.out / 'step.csv'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
