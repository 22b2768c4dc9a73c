"""Measures the same training steps in stepladder and in PyTorch, in turns, on the same threads.

Every round measures each configuration once, so that drift of the machine affects all equally. On a
CPU each has a process of its own; on a GPU PyTorch has one for each network. These files of OUT are
written after each measurement, and an interrupted run keeps them:

    tuned.csv         the rungs of use `best`, chosen once before the first round
    step.csv          medians over the rounds, with the columns of `stepladder step`
    samples.csv       one row per round
    columns.json      names and types of the columns
    environment.json  machine, commit, version of PyTorch, device, number of rounds

With --device cuda the steps are those of our CUDA rungs, beside PyTorch in modes eager, cuda_graph
and compile, each with and without TF32; nothing is tuned.

With --ranks the steps are synchronous data-parallel ones on that many ranks of one thread: ours
over MPI, PyTorch's with DistributedDataParallel over gloo. peers_data_parallel.csv compares them.
"""

import argparse
import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from all_reduce import mpi_environment, mpirun
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
# Columns and their types, for the CSV files and for columns.json.
COLUMNS = {
    "step": {"network": "text", "use": "text", "mode": "text", "threads": "integer",
             "ranks": "integer", "device": "text", "layer": "text", "phase": "text",
             "variant": "text", "median_s": "number", "predicted_s": "number"},
    "samples": {"network": "text", "use": "text", "mode": "text", "threads": "integer",
                "device": "text", "round": "integer", "median_s": "number"},
    # With --ranks; README.md explains the columns.
    "peers_data_parallel": {
        "network": "text", "use": "text", "mode": "text", "threads": "integer", "ranks": "integer",
        "batch": "integer", "rounds": "integer", "median_s": "number", "ci_low_s": "number",
        "ci_high_s": "number", "samples_per_s": "number", "ratio": "number",
        "ratio_ci_low": "number", "ratio_ci_high": "number", "exposed_share": "number",
        "status": "text", "reason": "text"},
}
PHASES = ["forward", "backward", "all_reduce", "update"]
# Per device, use and mode of our step with which PyTorch is compared.
OURS = {"cpu": ("best", "single"), "cuda": ("cuda", "graph")}
OVER_RANKS = ("best", "synchronous")
TF32 = "_tf32"  # suffix of PyTorch's modes that may use TF32


def tune(program, networks, threads, file):
    done = subprocess.run([program, "tune", "--network", ",".join(networks),
                           "--threads", ",".join(map(str, threads)), "--out", file])
    if done.returncode != 0:
        raise SystemExit("peers: choosing the best rungs failed; nothing was measured")


def reason_of(errors):
    """Our own sentence; mpirun writes a block of its own after it."""
    own = [line for line in errors.splitlines() if line.startswith("stepladder: ")]
    return own[0] if own else last_line(errors)


def run_stepladder(program, network, use, threads, tuned, ranks):
    """Seconds of a step and of its phases; the machine."""
    launcher = mpirun(ranks, len(os.sched_getaffinity(0))) if ranks > 1 else []
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        out.mkdir()
        choices = ["--tuned", tuned] if tuned else []
        ceilings = tuned.with_name("ceilings.json") if tuned else None
        if ranks > 1 and ceilings.exists():
            shutil.copy(ceilings, out)  # measuring them takes longer than the steps
        done = subprocess.run([*launcher, program, "step", "--network", network, "--use", use,
                               "--threads", str(threads), *choices, "--out", out],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env=mpi_environment() if ranks > 1 else None)
        if done.returncode != 0:
            raise RuntimeError(reason_of(done.stderr))
        rows = list(csv.DictReader((out / "step.csv").open()))
        machine = machine_of(out)
        if ranks > 1:
            shutil.copy(out / "ceilings.json", ceilings)
    total = next(r for r in rows if r["layer"] == "total")
    if int(total["ranks"]) != ranks:
        raise RuntimeError(f"the step ran on {total['ranks']} rank, expected {ranks}: the program "
                           "was built for another MPI library than that of mpirun")
    phases = {p: sum(float(r["median_s"]) for r in rows if r["phase"] == p)
              for p in PHASES if any(r["phase"] == p for r in rows)}
    return float(total["median_s"]), phases, machine


class PyTorchOnGpu:
    """PyTorch's steps on a GPU: one process for each network measures one mode after another. The
    first measurement starts all of them, because importing PyTorch takes longer than measuring."""

    def __init__(self, file, networks, seconds):
        self.commands = {
            network: [sys.executable, HERE / "pytorch_step.py", network, "--threads", "1",
                      "--device", "cuda", "--file", file, "--seconds", str(seconds)]
            for network in networks}
        self.processes = {}

    def measure(self, network, mode):
        if not self.processes:
            for name, command in self.commands.items():
                errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  (open as long as the process)
                process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                           stderr=errors, text=True)
                self.processes[name] = process, errors
        process, errors = self.processes[network]
        tf32 = " tf32" if mode.endswith(TF32) else ""
        try:
            print(mode.removesuffix(TF32) + tf32, file=process.stdin, flush=True)
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            process.wait()
            errors.seek(0)
            raise RuntimeError(last_line(errors.read()))
        result = json.loads(line)
        if "error" in result:
            raise RuntimeError(result["error"])
        return result


def run_pytorch(file, network, mode, threads, device, seconds, ranks, on_gpu):
    if device == "cuda":
        result = on_gpu.measure(network, mode)
    else:
        program, places = "pytorch_step.py", ["--threads", str(threads)]
        if ranks > 1:
            program, places = "pytorch_distributed.py", ["--ranks", str(ranks)]
        result = answer_of([sys.executable, HERE / program, network, *places, "--file", file,
                            "--mode", mode, "--seconds", str(seconds)],
                           threads if ranks == 1 else None)
    return (statistics.median(result["total"]), result["phases"],
            {"pytorch": result["torch"], "device": result["device"]})


def write_results(out, seconds, phases, rounds, about, ranks):
    """Medians over the rounds so far."""
    write_environment(out, {"pytorch": None, "device": "cpu"} | about
                      | {"rounds": rounds, "ranks": ranks})
    rows = []
    for key, totals in seconds.items():
        row = dict(zip(("network", "use", "mode", "threads", "device"), key)) | {"ranks": ranks}
        for phase in PHASES:
            times = [p[phase] for p in phases[key] if phase in p]  # a CUDA graph has none
            if times:
                rows.append(row | {"layer": "all", "phase": phase,
                                   "median_s": statistics.median(times)})
        rows.append(row | {"layer": "total", "phase": "total",
                           "median_s": statistics.median(totals)})
    write_rows(out / "step.csv", COLUMNS["step"], rows)


def write_data_parallel(out, configurations, seconds, phases, failed, ranks, descriptions):
    """Compares what the rounds so far have measured; returns the rows."""
    rows = []
    for key in configurations:
        network, use, mode, threads, device = key
        batch = descriptions[network]["batch"]
        row = {"network": network, "use": use, "mode": mode, "threads": threads, "ranks": ranks,
               "batch": batch}
        totals = seconds.get(key, [])
        if key in failed:
            row |= {"status": "failed", "reason": failed[key]}
        elif totals:
            row |= {"rounds": len(totals), "median_s": statistics.median(totals), "status": "ok"}
            row["ci_low_s"], row["ci_high_s"] = interval(totals)
            row["samples_per_s"] = ranks * batch / row["median_s"]
            row["exposed_share"] = statistics.median(
                p["all_reduce"] / total for p, total in zip(phases[key], totals))
            own = seconds.get((network, *OVER_RANKS, threads, device), [])
            if (use, mode) != OVER_RANKS and own:
                ratios = [total / of_best for total, of_best in zip(totals, own)]  # same batch
                row["ratio"] = statistics.median(ratios)
                row["ratio_ci_low"], row["ratio_ci_high"] = interval(ratios)
        else:
            continue
        rows.append(row)
    write_rows(out / "peers_data_parallel.csv", COLUMNS["peers_data_parallel"], rows)
    return rows


def print_data_parallel(rows, ranks):
    print(f"{ranks} ranks of one thread, synchronous;\nsamples/s, the share of communication that "
          "computing waits for, and samples/s of best / of the row")
    for row in rows:
        if row["status"] == "ok":
            low, high = row.get("ratio_ci_low"), row.get("ratio_ci_high")
            ratio = f"{row['ratio']:6.2f}x ({low:.2f} to {high:.2f})" if "ratio" in row else ""
            text = (f"  {row['network']:10} {row['use']:8} {row['mode']:15} "
                    f"{row['samples_per_s']:9.1f} {100 * row['exposed_share']:5.1f} %  {ratio}")
            print(text.rstrip())


def configurations_of(networks, threads, device, descriptions, ranks):
    """(network, use, mode, threads, device) of all measurements; the slowest modes come last."""
    own_mode = OVER_RANKS[1] if ranks > 1 else OURS["cpu"][1]
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
            found += [(network, use, own_mode, count, "cpu") for use in ("best", "vendor")]
            found += [(network, "pytorch", mode, count, "cpu") for mode in modes]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/stepladder")
    parser.add_argument("--file", default="bench/networks.json")
    parser.add_argument("--networks",
                        help="mlp,mnist_cnn,cifar_cnn by default; with --ranks mnist_cnn")
    parser.add_argument("--threads", default=f"1,{len(os.sched_getaffinity(0))}",
                        help="with --ranks each rank has one")
    parser.add_argument("--ranks", type=number_of_ranks, default=1,
                        help="processes of a data-parallel step")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0,
                        help="time of a measurement in PyTorch")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if options.ranks > 1 and options.device == "cuda":
        parser.error("--ranks needs --device cpu")
    if options.ranks > 1 and shutil.which(mpirun(2, 2)[0]) is None:
        raise SystemExit("peers: --ranks needs mpirun, which is not installed (Debian: "
                         "openmpi-bin)")
    if (options.out / "step.csv").exists():
        raise SystemExit(f"{options.out}: holds a run already; choose another folder with --out")
    default = "mnist_cnn" if options.ranks > 1 else "mlp,mnist_cnn,cifar_cnn"
    networks = (options.networks or default).split(",")
    descriptions = described(options.file, networks)
    threads = [1] if options.ranks > 1 else numbers_of("--threads", options.threads)
    options.out.mkdir(parents=True, exist_ok=True)
    write_columns(options.out, COLUMNS)

    tuned = options.out / "tuned.csv" if options.device == "cpu" else None
    if tuned:
        tune(options.program, networks, threads, tuned)
    configurations = configurations_of(networks, threads, options.device, descriptions,
                                       options.ranks)

    seconds, phases, failed, about = {}, {}, {}, {}
    on_gpu = PyTorchOnGpu(options.file, networks, options.seconds)
    with (options.out / "samples.csv").open("w", newline="") as file:
        samples = csv.writer(file, lineterminator="\n")
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
                        total, of_phases, of_run = run_pytorch(
                            options.file, network, mode, count, device, options.seconds,
                            options.ranks, on_gpu)
                    else:
                        total, of_phases, of_run = run_stepladder(
                            options.program, network, use, count, tuned, options.ranks)
                except RuntimeError as error:
                    failed[key] = str(error)
                    continue
                about |= of_run
                seconds.setdefault(key, []).append(total)
                phases.setdefault(key, []).append(of_phases)
                samples.writerow([*key, round_number, f"{total:.6g}"])
                file.flush()
                write_results(options.out, seconds, phases, round_number, about, options.ranks)
                if options.ranks > 1:
                    write_data_parallel(options.out, configurations, seconds, phases, failed,
                                        options.ranks, descriptions)

    print(f"\nPyTorch {about.get('pytorch', 'not measured')}, {options.rounds} rounds in turns; ",
          end="")
    if options.ranks > 1:
        rows = write_data_parallel(options.out, configurations, seconds, phases, failed,
                                   options.ranks, descriptions)
        print_data_parallel(rows, options.ranks)
    else:
        print_steps(seconds, options.device)
    for key, why in failed.items():
        print(f"  FAILED {' '.join(map(str, key))}: {why}")
    print(f"\n{options.out / ('peers_data_parallel.csv' if options.ranks > 1 else 'step.csv')}")
    return 1 if failed else 0


def number_of_ranks(text):
    if not text.isdigit() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of ranks; expected 2 or more")
    return int(text)


def print_steps(seconds, device):
    print("milliseconds of a step, and the ratio of medians to ours")
    use, mode = OURS[device]
    for network, count in dict.fromkeys((key[0], key[3]) for key in sorted(seconds)):
        own_key = (network, use, mode, count, device)
        own = statistics.median(seconds.get(own_key, [float("nan")]))
        for key, totals in seconds.items():
            if (key[0], key[3]) == (network, count):
                median = statistics.median(totals)
                print(f"  {network:10} {count} threads  {key[1]:8} {key[2]:15} {key[4]:4} "
                      f"{median * 1e3:9.3f} {median / own:6.2f}x")


if __name__ == "__main__":
    sys.exit(main())
