"""Writes the run folder of a comparison of training modes, with plausible, made-up numbers."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from run_folder import environment, write_json
from tests.columns import described, documented
from tests.commands import write_csv

TRAIN = documented("train")
OF_ALL_RANKS = list(TRAIN)[list(TRAIN).index("bytes_per_step"):]

# Per mode: speed of 4 ranks over single, relative accuracy per sample, bytes per step, shares of
# exposed, hidden and waiting, mean staleness (None: synchronous).
MODES = {
    "single": (1.0, 1.0, 0, 0.0, 0.0, 0.0, None),
    "synchronous": (1.5, 1.0, 1e7, 0.2, 0.05, 0.1, None),
    "synchronous,compressed=one_bit": (1.7, 0.8, 3e5, 0.08, 0.02, 0.12, None),
    "synchronous,compressed=top_k": (1.6, 0.85, 2e5, 0.1, 0.0, 0.12, None),
    "sharded": (1.55, 1.0, 1e7, 0.18, 0.1, 0.1, None),
    "parameter_server": (1.1, 1.0, 6.6e6, 0.4, 0.0, 0.2, None),
    "token_ring": (0.8, 0.9, 1.3e7, 0.5, 0.0, 0.3, 3.0),
    "downpour": (1.9, 0.6, 1.3e7, 0.1, 0.3, 0.0, 2.9),
    "ssp,bound=2": (1.8, 0.75, 1.3e7, 0.12, 0.2, 0.05, 1.4),
    "local_sgd,every=8": (1.95, 0.7, 1.2e6, 0.03, 0.0, 0.06, None),
    "hogwild": (1.8, 0.8, 0, 0.0, 0.0, 0.0, 2.1),
    "threads_over_samples": (1.6, 1.0, 0, 0.05, 0.0, 0.1, None),
    "actors_learner": (1.2, 0.5, 0, 0.02, 0.0, 0.4, None),
    "model_parallel": (0.7, 1.0, 4e5, 0.3, 0.0, 0.3, None),
    "pipeline": (1.3, 1.0, 4e5, 0.1, 0.1, 0.35, None),
}


def training(mode: str, seed: int = 1, *, ranks: int = 4, speed: float | None = None,
             epochs: int = 10, accuracy: float = 0.977, **values) -> list[dict]:
    """The rows of one training: every 10 steps, and an evaluation after every 1,000 samples."""
    factor, learns, bytes_sent, exposed, hidden, waiting, stale = MODES.get(mode,
                                                                            MODES["synchronous"])
    noise = random.Random(f"{mode} {seed} {ranks}")
    ranks = 1 if mode == "single" else ranks
    rate = speed or 1400 * (1
                            + (factor - 1) * math.log2(max(ranks, 1)) / 2) * noise.uniform(
                                0.93, 1.07)
    common = {"network": "mnist_cnn", "use": "best", "mode": mode, "threads": 1, "ranks": ranks,
              "hosts": 1, "device": "cpu", "seed": seed, "batch": 64, "optimizer": "momentum",
              "all_reduce": "ring" if mode.startswith("synchronous") else ""} | values
    rows = []
    for step in range(1, epochs * 62 + 1):
        samples = step * common["batch"]
        evaluated = samples // 1000 > (samples - common["batch"]) // 1000
        if step % 10 and not evaluated:
            continue
        progress = samples * learns / 4000
        error = (1 - accuracy) * noise.uniform(0.9, 1.1) + 0.45 * math.exp(-progress / 0.7) \
            + 0.08 * math.exp(-progress / 2.5) * noise.uniform(0.7, 1.3)
        rows.append(common | {
            "step": step, "epoch": (samples - 1) // 4000 + 1, "samples": samples,
            "seconds": samples / rate,
            "samples_per_s": rate,
            "loss": (2.2 * math.exp(-progress / 0.8) + 0.5 * math.exp(-progress / 3)
                     + 0.02) * noise.uniform(0.7, 1.3),
            "accuracy": round(1 - min(error, 0.9), 3) if evaluated else None, "learning_rate": 0.01,
            # Of all ranks only at evaluations, as the program writes them.
            **dict.fromkeys(OF_ALL_RANKS)} | ({
            "bytes_per_step": bytes_sent, "compute_share": 0.98 - exposed - waiting,
            "exposed_share": exposed,
            "hidden_share": hidden, "waiting_share": waiting, "staleness_mean": stale,
            "staleness_max": None if stale is None else int(4 * stale)} if evaluated else {}))
    return rows


def staleness(mode: str, seed: int = 1, **values) -> list[dict]:
    mean = MODES[mode][6]
    common = {"network": "mnist_cnn", "use": "best", "mode": mode, "threads": 1, "ranks": 4,
              "hosts": 1, "seed": seed, "batch": 64, "optimizer": "momentum"} | values
    return [common
            | {"staleness": k,
               "updates": round(620 * math.exp(-mean) * mean ** k / math.factorial(k))}
            for k in range(int(4 * mean) + 1)]


def write(folder: Path, trainings: Iterable[Sequence[dict]],
          histograms: Iterable[Sequence[dict]] = (), columns: dict[str, str] = TRAIN) -> Path:
    write_json(folder / "environment.json", **environment() | {"data": "mnist-5k"})
    tables = {"train": (columns, trainings), "staleness": (documented("staleness"), histograms)}
    for name, (of_table, groups) in tables.items():
        write_csv(folder / f"{name}.csv", [row for group in groups for row in group], of_table)
    write_json(folder / "columns.json", tables={
        name: described(of_table) for name, (of_table, _) in tables.items()})
    return folder


def write_comparison(folder: Path, modes: Collection[str] = tuple(MODES),
                     seeds: Sequence[int] = (1, 2, 3, 4, 5), ranks: Sequence[int] = (4,)) -> Path:
    """All seeds of all modes, in the order of make compare-modes."""
    chosen = [(mode, seed, count) for seed in seeds for mode in modes for count in ranks
              if mode != "single" or count == ranks[0]]
    return write(folder, [training(mode, seed, ranks=count) for mode, seed, count in chosen],
                 [staleness(mode, seed, ranks=count) for mode, seed, count in chosen
                  if MODES[mode][6] is not None])
