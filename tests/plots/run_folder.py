"""Writes a run folder with plausible, made-up numbers, in the form that the C++ side writes."""

from __future__ import annotations

import csv
import io
import json
import math
import random
from collections.abc import Collection, Iterable
from pathlib import Path

from plots.data import schema
from tests import columns
from tests.commands import changing
from tests.commands import write_csv as write_rows

# Per primitive: variant, technique, builds_on, share of the roof on one thread (None: unavailable),
# threaded.
VARIANTS = {
    "matmul": [
        ("serial_ijk", "serial", "", 0.005, False),
        ("serial_ikj", "serial", "serial_ijk", 0.03, False),
        ("blocked", "serial", "serial_ikj", 0.05, False),
        ("simd_sse42", "simd", "blocked", 0.10, False),
        ("simd_avx2", "simd", "blocked", 0.22, False),
        ("simd_avx512", "simd", "blocked", 0.35, False),
        ("openmp", "openmp", "simd", 0.34, True),
        ("pthread", "pthread", "simd", 0.33, True),
        ("packed", "simd", "simd", 0.70, False),
        ("packed_openmp", "openmp", "packed", 0.69, True),
        ("openblas", "vendor", "", 0.52, True),
        ("onednn", "vendor", "", 0.60, True),
        ("mkl", "vendor", "", None, True),
    ],
    "convolution": [
        ("direct", "serial", "", 0.02, False),
        ("im2col", "serial", "direct", 0.2, False),
        ("simd_sse42", "simd", "direct", 0.08, False),
        ("simd_avx2", "simd", "direct", 0.18, False),
        ("simd_avx512", "simd", "direct", 0.3, False),
        ("openmp", "openmp", "simd", 0.29, True),
        ("pthread", "pthread", "simd", 0.28, True),
        ("onednn", "vendor", "", 0.55, True),
    ],
    "max_pool": [
        ("serial", "serial", "", 0.1, False),
        ("branchless", "serial", "serial", 0.2, False),
        ("simd_avx2", "simd", "branchless", 0.5, False),
        ("simd_avx512", "simd", "branchless", 0.6, False),
        ("openmp", "openmp", "simd", 0.6, True),
        ("onednn", "vendor", "", 0.55, True),
    ],
    "sgd_update": [
        ("serial", "serial", "", 0.3, False),
        ("simd_avx2", "simd", "serial", 0.7, False),
        ("simd_avx512", "simd", "serial", 0.8, False),
        ("openmp", "openmp", "simd", 0.8, True),
    ],
}
SHAPES = {  # (m, n, k); the direction is the problem's
    "mlp.fc1.forward": (64, 512, 784), "mlp.fc1.backward_weights": (784, 512, 64),
    "mlp.fc2.forward": (64, 256, 512), "mlp.fc2.backward_data": (64, 512, 256),
    "mlp.fc2.backward_weights": (512, 256, 64), "mnist_cnn.fc1.forward": (64, 512, 3136),
    "mnist_cnn.fc1.backward_data": (64, 3136, 512),
    "mnist_cnn.fc1.backward_weights": (3136, 512, 64), "cifar_cnn.fc3.forward": (128, 10, 192),
}
CONVOLUTIONS = {"mnist_cnn.conv1": 8.0e7, "mnist_cnn.conv2": 1.3e9, "cifar_cnn.conv1": 7.1e8,
                "cifar_cnn.conv2": 3.8e9}
POOLS = {"mnist_cnn.pool1": 8.0e6, "mnist_cnn.pool2": 4.0e6, "cifar_cnn.pool1": 2.4e7,
         "cifar_cnn.pool2": 6.0e6}
COUNTS = {"mlp": 535818, "mnist_cnn": 1663370, "cifar_cnn": 1068298}
OPTIMIZERS = {"sgd": 12, "momentum": 20, "adagrad": 20, "adadelta": 28, "rmsprop": 20, "adam": 28}
ALL_REDUCE = [("gather_broadcast", "", 1.5), ("token_ring", "gather_broadcast", 1.2),
              ("recursive_doubling", "gather_broadcast", 3.0), ("ring", "token_ring", 4.0),
              ("mpi_allreduce", "", 3.3)]
PEAK = {1: 151.0, 2: 300.0}         # GFLOP/s
BANDWIDTH = {1: 11.0, 2: 22.0}      # GB/s
CACHE = {"L1": 310.0, "L2": 120.0, "L3": 30.0}
LAYERS = {
    "mlp": [("fc1", 9.0), ("relu1", 0.2), ("fc2", 3.0), ("relu2", 0.1), ("fc3", 0.1),
            ("softmax_cross_entropy", 0.1)],
    "mnist_cnn": [("conv1", 14.0), ("relu1", 2.0), ("pool1", 4.0), ("conv2", 210.0),
                  ("relu2", 1.0), ("pool2", 2.0), ("fc1", 33.0), ("relu3", 0.1), ("fc2", 0.4),
                  ("softmax_cross_entropy", 0.1)],
    "cifar_cnn": [("conv1", 110.0), ("relu1", 6.0), ("pool1", 12.0), ("conv2", 600.0),
                  ("relu2", 2.0), ("pool2", 4.0), ("fc1", 36.0), ("fc2", 3.0), ("fc3", 0.2),
                  ("softmax_cross_entropy", 0.1)],
}
USES = {"serial": 1.0, "simd": 8.0, "openmp": 7.8, "best": 16.0, "vendor": 14.0}


def row(table: schema.Table, **values) -> list[str]:
    unknown = set(values) - set(table.names)
    assert not unknown, unknown
    return ["" if values.get(name) is None else str(values[name]) for name in table.names]


def csv_text(table: schema.Table, rows: list[list[str]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.names)
    writer.writerows(rows)
    return out.getvalue()


def summary_row(variant: str, seconds: float, *, problem: str = "p", direction: str = "forward",
                threads: int = 1, **values) -> list[str]:
    """A measured row of matmul, with the columns that ratios need."""
    defaults = {"primitive": "matmul", "technique": "serial", "suite": "layers", "cache": "warm",
                "ranks": 1, "device": "cpu", "status": "ok", "median_s": seconds}
    return row(columns.SUMMARY, **(defaults | {"variant": variant, "problem": problem,
                                              "direction": direction, "threads": threads} | values))


def total(network="mlp", use="best", seconds=0.001, threads=1, **values) -> list[str]:
    where = {"network": network, "use": use, "mode": "single", "threads": threads, "ranks": 1,
             "device": "cpu", "layer": "total", "phase": "total", "median_s": seconds}
    return row(columns.STEP, **(where | values))


def write_csv(folder: Path, table: schema.Table, rows: list[list[str]]) -> Path:
    path = folder / table.file
    path.write_text(csv_text(table, rows))
    (folder / schema.COLUMNS_FILE).write_text(columns.JSON)
    return path


def write_documented(folder: Path, name: str, rows: Iterable[dict]) -> None:
    """Rows of a table that has the documented columns, which the published run is older than."""
    types = columns.documented(name)
    with changing(folder / schema.COLUMNS_FILE) as content:
        content["tables"][name] = columns.described(types)
    write_rows(folder / f"{name}.csv", rows, types)


def table_row(text: str, *start: str) -> list[str]:
    """The cells of the first row of a table in Markdown that begins so."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[:len(start)] == list(start):
            return cells
    raise AssertionError(f"no row {start} in\n{text}")


def write_json(path: Path, **content) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"schema_version": 1, **content}))


def ceiling(name: str, unit: str, value: float | None, level: str = "", threads: int = 1) -> dict:
    return {"name": name, "unit": unit, "threads": threads, "level": level, "value": value}


def write_run(folder: Path, primitives: Collection[str] = tuple(VARIANTS),
              networks: Collection[str] = tuple(LAYERS), seed: int = 1,
              sweeps: bool = False) -> Path:
    """A run of these primitives and all_reduce, the steps of these networks, two trainings.
    `sweeps`: with suites that vary one size too."""
    folder.mkdir(parents=True, exist_ok=True)
    noise = random.Random(seed)
    (folder / schema.ENVIRONMENT_FILE).write_text(json.dumps(environment(), indent=2))
    (folder / schema.CEILINGS_FILE).write_text(json.dumps(ceilings(), indent=2))
    summary = [*arithmetic_rows(noise, primitives, sweeps), *all_reduce_rows(noise)]
    write_csv(folder, columns.SUMMARY, summary)
    write_csv(folder, columns.STEP, step_rows(noise, networks))
    write_csv(folder, columns.TRAIN, train_rows(noise))
    write_csv(folder, columns.SAMPLES, sample_rows(noise, summary))
    return folder


def environment() -> dict:
    return {
        "schema_version": 1, "cpu_model": "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz",
        "cores": 2, "threads_available": 2, "isa": ["sse42", "avx2", "avx512"],
        "caches": "L1d 48 KiB, L2 2 MiB, L3 105 MiB", "governor": "unknown",
        "memory_bytes": 17179869184, "compiler": "GNU 12.2.0", "compiler_flags": "-O3 -g0",
        "libraries": {"openblas": "0.3.21", "onednn": "2.6.3"}, "gpu": None,
        "commit": "0123456789abcdef0123456789abcdef01234567", "dirty": False, "seed": 1,
        "commands": ["stepladder bench --suite layers"], "data": "generated",
        "started_at": "2024-05-05T10:00:00Z", "counters": "unavailable: no hardware counters here",
        "quiet_sentence": "The machine was quiet: 3 % of the repetitions were taken again.",
    }


def ceilings() -> dict:
    found = []
    for threads in (1, 2):
        for name, share in (("fma_peak", 1), ("fma_peak_avx2", 1/2), ("fma_peak_sse42", 1/4)):
            found.append(ceiling(name, "GFLOP/s", share * PEAK[threads], threads=threads))
        for name, factor in (("stream_copy", 1.0), ("stream_read", 1.1), ("stream_triad", 0.95)):
            levels = {"DRAM": BANDWIDTH[threads], **{level: value * threads
                                                     for level, value in CACHE.items()}}
            found += [ceiling(name, "GB/s", value * factor, level, threads)
                      for level, value in levels.items()]
    return {"schema_version": 1, "ceilings": found}


def problems(primitive: str, sweeps: bool):
    """(suite, problem, direction, flops, bytes)"""
    if sweeps and primitive == "matmul":
        for n in (64, 128, 256, 512, 1024):
            yield "squares", f"square.{n}", "forward", 2.0 * n ** 3, 12.0 * n ** 2
    if sweeps and primitive == "max_pool":
        for n in (1e5, 1e6, 1e7, 1e8):
            for direction in ("forward", "backward"):
                yield "sweep", f"sweep.{n:g}.{direction}", direction, n / 4, n
    if primitive == "matmul":
        for name, (m, n, k) in SHAPES.items():
            yield "layers", name, name.rpartition(".")[2], 2.0 * m * n * k, 4.0 * (m*k + k*n + m*n)
    elif primitive == "convolution":
        for layer, flops in CONVOLUTIONS.items():
            for direction in ("forward", "backward_data", "backward_weights"):
                if not (direction == "backward_data" and layer.endswith("conv1")):
                    yield "layers", f"{layer}.{direction}", direction, flops, flops / 40
    elif primitive == "max_pool":
        for layer, size in POOLS.items():
            for direction in ("forward", "backward"):
                yield "layers", f"{layer}.{direction}", direction, size / 4, size
    else:
        for optimizer, width in OPTIMIZERS.items():
            for name, count in COUNTS.items():
                yield "layers", name, optimizer, 4.0 * count, float(width) * count


def arithmetic_rows(noise: random.Random, primitives: Collection[str],
                    sweeps: bool = False) -> list[list[str]]:
    rows = []
    for primitive in primitives:
        variants = VARIANTS[primitive]
        compute = primitive in ("matmul", "convolution")
        rows += [unavailable_row(primitive, name, technique)
                 for name, technique, _, share, _ in variants if share is None]
        for suite, problem, direction, flops, size in problems(primitive, sweeps):
            work = {}  # median seconds by (variant, threads)
            for name, _, _, share, threaded in variants:
                if share is None:
                    continue
                for threads in (1, 2) if threaded else (1,):
                    roof = PEAK[threads] * 1e9 if compute else BANDWIDTH[threads] * 1e9
                    droop = noise.uniform(0.75, 1.1) * (0.92 if threads == 2 else 1.0)
                    work[name, threads] = (flops if compute else size) / (roof * share * droop)
            serial = work[variants[0][0], 1]
            vendors = {threads: min((s for (name, t), s in work.items() if t == threads and
                                     name in ("openblas", "onednn")), default=None)
                       for threads in (1, 2)}
            for name, technique, builds_on, share, threaded in variants:
                common = {"primitive": primitive, "direction": direction, "variant": name,
                          "technique": technique, "builds_on": builds_on, "suite": suite,
                          "problem": problem, "shape": "shape, with a comma",
                          "precision": "fp32", "prepacked": "no", "cache": "warm", "device": "cpu",
                          "flops": flops, "bytes": size, "ranks": 1,
                          "repeat_command": f'stepladder bench {primitive} --variant "{name}"'}
                if share is None:
                    continue
                for threads in (1, 2) if threaded else (1,):
                    seconds = work[name, threads]
                    spread = noise.uniform(0.01, 0.04)
                    wide = noise.random() < 0.03
                    rate = (flops / seconds / 1e9, size / seconds / 1e9)
                    share_now = 100 * (rate[0] / PEAK[threads] if compute
                                       else rate[1] / BANDWIDTH[threads])
                    rows.append(row(
                        columns.SUMMARY, **common, threads=threads, status="ok", verified="yes",
                        error_ratio=0.02, repetitions=15, median_s=seconds,
                        reason="noisy: 95 % interval spans 25 % of the median" if wide else "",
                        ci_low_s=seconds * (1 - spread), ci_high_s=seconds * (1 + spread),
                        min_s=seconds * 0.95, gflops_per_s=rate[0], gbytes_per_s=rate[1],
                        roof="fma_peak" if compute else "stream_copy_DRAM",
                        percent_of_roof=share_now, speedup_vs_serial=serial / seconds,
                        speedup_vs_vendor=vendors[threads] / seconds if vendors[threads] else None))
    return rows


def unavailable_row(primitive: str, variant: str, technique: str) -> list[str]:
    """The one row of a variant that cannot run on this machine: it names no problem."""
    return row(columns.SUMMARY, primitive=primitive, variant=variant, technique=technique,
               precision="fp32", prepacked="no", device="cpu", status="unavailable",
               reason=f"{variant} was not found", verified="no")


def all_reduce_rows(noise: random.Random) -> list[list[str]]:
    rows = []
    for ranks in (2, 4):
        for power in range(6, 25, 3):
            size = 4.0 * 2 ** power
            for name, builds_on, rate in ALL_REDUCE:
                seconds = 3e-6 * ranks + size / (rate * 1e9) * noise.uniform(0.9, 1.1)
                bus = size * 2 * (ranks - 1) / ranks / seconds / 1e9
                vendor = name == "mpi_allreduce"
                rows.append(row(
                    columns.SUMMARY, primitive="all_reduce", direction="sum", variant=name,
                    technique="vendor" if vendor else "mpi", builds_on=builds_on, suite="sweep",
                    problem=f"count.{2 ** power}", shape=2 ** power, precision="fp32",
                    cache="warm", threads=1, ranks=ranks, device="cpu", status="ok",
                    verified="yes", repetitions=15, median_s=seconds, ci_low_s=seconds * 0.95,
                    ci_high_s=seconds * 1.06, min_s=seconds * 0.9, bytes=2 * size,
                    flops=size / 4 * (ranks - 1), gbytes_per_s=2 * size / seconds / 1e9,
                    busbw_gbytes_per_s=bus,
                    repeat_command=f"mpirun -np {ranks} stepladder bench all_reduce"))
    return rows


def step_rows(noise: random.Random, networks: Collection[str]) -> list[list[str]]:
    rows = []
    for network in networks:
        layers = LAYERS[network]
        runs = [(use, "single", speed) for use, speed in USES.items()]
        if network == "mnist_cnn":
            runs += [("best,convolution=direct", "ablate", 2.0),
                     ("best,matmul=serial_ijk", "ablate", 5.0),
                     ("best,max_pool=serial", "ablate", 13.0)]
        for use, mode, speed in runs:
            for threads in (1, 2):
                if use in ("serial", "simd") and threads == 2:
                    continue
                rows += one_step(noise, network, layers, use, mode, threads, speed)
    return rows


def one_step(noise, network, layers, use, mode, threads, speed) -> list[list[str]]:
    common = {"network": network, "use": use, "mode": mode, "threads": threads, "ranks": 1,
              "device": "cpu"}
    total = predicted_total = 0.0
    rows = []
    for phase, order, factor in (("forward", layers, 0.33), ("backward", layers[::-1], 0.62),
                                 ("update", layers, 0.05)):
        for layer, milliseconds in order:
            weights = layer.startswith(("fc", "conv"))
            if phase == "update" and not weights:
                continue
            faster = speed * (1.85 if threads == 2 else 1.0) * (1 if weights else 0.5)
            predicted = milliseconds * 1e-3 * factor / max(faster, 1.0) * noise.uniform(0.9, 1.1)
            seconds = predicted * noise.uniform(0.95, 1.35)
            technique = {"best": "packed_openmp", "vendor": "onednn"}.get(use.split(",")[0], use)
            rows.append(row(columns.STEP, **common, layer=layer, phase=phase,
                            variant=technique if weights else "fused",
                            median_s=seconds, predicted_s=predicted))
            total += seconds
            predicted_total += predicted
    rows.append(row(columns.STEP, **common, layer="total", phase="total", median_s=total * 1.02,
                    predicted_s=predicted_total))
    return rows


def train_rows(noise: random.Random) -> list[list[str]]:
    rows = []
    for mode, speed in (("single", 0.012), ("two_ranks", 0.0075)):
        for step in range(1, 801):
            loss = 2.3 * math.exp(-step / 120) + 0.06 + noise.uniform(-0.05, 0.05)
            last = step % 125 == 0 or step == 800
            rows.append(row(columns.TRAIN, step=step, epoch=step // 125, seconds=step * speed,
                            samples_per_s=64 / speed, loss=max(loss, 0.01),
                            accuracy=0.98 if last else None, learning_rate=0.01, mode=mode))
    return rows


def sample_rows(noise: random.Random, summary: list[list[str]]) -> list[list[str]]:
    """Fifteen rounds; the drift of a round is the same for all rows of a problem."""
    rows = []
    column = {name: i for i, name in enumerate(columns.SUMMARY.names)}
    copied = ("primitive", "direction", "variant", "problem", "threads", "ranks")
    for fields in summary:
        if fields[column["status"]] != "ok":
            continue
        for repetition in range(15):
            slowed = noise.random() < 0.04
            drift = 1 + 0.3 * math.sin(repetition)
            slowness = noise.uniform(1.2, 2.2) if slowed else noise.uniform(1, 1.06)
            rows.append(row(
                columns.SAMPLES, **{name: fields[column[name]] for name in copied},
                repetition=repetition, iterations=4, stolen_s=0.0,
                marked="disturbed" if slowed else "",
                seconds=float(fields[column["median_s"]]) * drift * slowness,
                tsc_cycles=1000, calibration_ratio=slowness))
    return rows
