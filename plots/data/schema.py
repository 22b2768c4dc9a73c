"""The files of a run folder. Its columns.json describes the columns of its CSV files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from plots.data.errors import InputError

SCHEMA_VERSION = 1

ENVIRONMENT_FILE = "environment.json"
CEILINGS_FILE = "ceilings.json"
COLUMNS_FILE = "columns.json"
SUMMARY_FILE = "summary.csv"
SAMPLES_FILE = "samples.csv"
TRACE_FILE = "trace.json"    # of the training steps
SPREAD_FILE = "spread.json"  # of several runs
CHARTS_FOLDER = "charts"
TABLES_FILE = "tables.md"
REPORT_FILE = "report.html"

# The CSV files, by name.
TABLES = ("summary", "step", "train", "samples")
MODE_TABLES = ("staleness",)  # of asynchronous trainings
INFERENCE_TABLES = ("inference",)  # of stepladder infer
ATTRIBUTION_FOLDER = "attribution"  # of the corners of the lattices, in a run folder
ATTRIBUTION_TABLES = ("attribution",)
SIMULATION_TABLES = ("simulation", "scaling")  # of make simulate, in a folder of its own

# What a run folder may hold, in the order in which tables.md lists it.
RUN_FILES = (ENVIRONMENT_FILE, CEILINGS_FILE, "benchmark.json", COLUMNS_FILE, SUMMARY_FILE,
             "summary.json", SAMPLES_FILE, "step.csv", "step.json", TRACE_FILE, "train.csv")
INFERENCE_FILES = ("inference.csv", "inference.json")
MODE_FILES = ("staleness.csv", "modes.csv", "modes.json")
SIMULATION_FILES = ("simulation.csv", "scaling.csv", "simulation.json")

CEILING_FIELDS = {"name": str, "unit": str, "threads": int, "level": str, "value": (int, float)}

TECHNIQUES = ("serial", "simd", "openmp", "pthread", "mpi", "cuda", "opencl", "vendor")

STATUSES = ("ok", "failed", "unavailable", "skipped")

PHASES = ("forward", "backward", "update", "all_reduce", "other")

# step.csv: the row of a whole configuration has this as its layer.
TOTAL = "total"

# The types of columns.json. An integer or number is None where it does not apply.
TYPES = {"text": str, "integer": int, "number": float}


class Column(NamedTuple):
    name: str
    kind: type  # str, int or float


@dataclass(frozen=True)
class Table:
    file: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]


def documented_columns(document: str, table: str) -> list[tuple[str, ...]]:
    """Name, type, unit and meaning of the columns of a CSV file, which a document describes."""
    path = Path(__file__).resolve().parents[2] / document
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected the columns of {table}.csv") from None
    found = re.search(rf"^### {table}\.csv\n\n((?:\|.*\n)+)", text, re.MULTILINE)
    if not found:
        raise InputError(f"{path}: has no heading '### {table}.csv' with a table of its columns")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in found[1].splitlines()[2:]]
    return [(name.strip("`"), *others) for name, *others in rows]
