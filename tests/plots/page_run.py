"""A small run for the tests of report.html: one ladder, a step, a training, a failed and an
unavailable row."""

from __future__ import annotations

import csv
from pathlib import Path

import run_folder
from plots.data import schema
from tests import columns

FAILED = {"primitive": "matmul", "direction": "forward", "variant": "broken", "technique": "simd",
          "builds_on": "blocked", "suite": "layers", "problem": "mlp.fc1.forward",
          "precision": "fp32",
          "prepacked": "no", "cache": "warm", "threads": 1, "ranks": 1, "device": "cpu",
          "status": "failed",
          "reason": "element 3 is <b>0.5</b>, expected 0.7 & </script>", "verified": "no"}


def write(folder: Path, seed: int = 1) -> Path:
    """Its charts stand for drawn ones: drawing takes seconds."""
    run_folder.write_run(folder, primitives=("matmul", "max_pool"), networks=("mlp", "mnist_cnn"),
                         seed=seed)
    append(folder, FAILED)
    charts = folder / schema.CHARTS_FOLDER
    charts.mkdir()
    for suffix in ("svg", "pdf", "png"):
        (charts / f"ladder-matmul.{suffix}").write_text(f"a chart as {suffix}")
    return folder


def append(folder: Path, values: dict) -> None:
    with (folder / schema.SUMMARY_FILE).open("a", newline="") as file:
        csv.writer(file, lineterminator="\n").writerow(run_folder.row(columns.SUMMARY, **values))
