"""The files of a run folder and their columns. The C++ side writes exactly these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

SCHEMA_VERSION = 1

ENVIRONMENT_FILE = "environment.json"
CEILINGS_FILE = "ceilings.json"
CHARTS_FOLDER = "charts"

# What a run folder may hold, in the order in which the table lists it.
RUN_FILES = (ENVIRONMENT_FILE, CEILINGS_FILE, "benchmark.json", "summary.csv", "samples.csv",
             "step.csv", "train.csv")

CEILING_FIELDS = {"name": str, "unit": str, "threads": int, "level": str, "value": (int, float)}

TECHNIQUES = ("serial", "simd", "openmp", "pthread", "mpi", "cuda", "vendor")

STATUSES = ("ok", "failed", "unavailable", "skipped")

PHASES = ("forward", "backward", "update", "all_reduce", "reorder", "other")

# step.csv: the row of a whole configuration carries this as its layer.
TOTAL = "total"


class Column(NamedTuple):
    name: str
    kind: type  # str, int or float; an int or float is None where it does not apply


@dataclass(frozen=True)
class Table:
    file: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]


def _table(file: str, names: str, integers: str = "", floats: str = "") -> Table:
    kinds = dict.fromkeys(integers.split(), int) | dict.fromkeys(floats.split(), float)
    return Table(file, tuple(Column(name, kinds.get(name, str)) for name in names.split()))


SUMMARY = _table(
    "summary.csv",
    """primitive direction variant technique builds_on suite problem shape precision layout
    prepacked cache threads ranks device status reason verified error_ratio repetitions median_s
    ci_low_s ci_high_s min_s prepare_s flops bytes gflops_per_s gbytes_per_s busbw_gbytes_per_s
    roof percent_of_roof speedup_vs_serial speedup_vs_vendor cycles instructions cpi energy_j
    repeat_command""",
    integers="threads ranks repetitions",
    floats="""error_ratio median_s ci_low_s ci_high_s min_s prepare_s flops bytes gflops_per_s
    gbytes_per_s busbw_gbytes_per_s percent_of_roof speedup_vs_serial speedup_vs_vendor cycles
    instructions cpi energy_j""")

STEP = _table(
    "step.csv",
    "network use mode threads ranks device layer phase variant median_s predicted_s",
    integers="threads ranks",
    floats="median_s predicted_s")

TRAIN = _table(
    "train.csv",
    "step epoch seconds samples_per_s loss accuracy learning_rate mode",
    integers="step epoch",
    floats="seconds samples_per_s loss accuracy learning_rate")

SAMPLES = _table(
    "samples.csv",
    """primitive direction variant problem threads ranks repetition seconds iterations marked
    calibration_ratio stolen_s tsc_cycles cycles instructions cache_misses""",
    integers="threads ranks repetition",
    floats="""seconds iterations calibration_ratio stolen_s tsc_cycles cycles instructions
    cache_misses""")

TABLES = {"summary": SUMMARY, "step": STEP, "train": TRAIN, "samples": SAMPLES}
