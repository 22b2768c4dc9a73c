"""The training modes of a run side by side: modes.csv and modes.json, from train.csv.

One row per mode, on one network and one choice of rungs, threads, ranks, hosts, batch and
optimizer, over its seeds. Charts and the last screen of `make compare-modes` take the same rows.
"""

from __future__ import annotations

import csv
import functools
import io
import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from plots.data import schema
from plots.data.errors import InputError
from plots.data.reading import Row, Run, grouped, read_json
from plots.data.samples import median_with_interval
from plots.data.trainings import Training, latest_trainings

CSV_FILE, JSON_FILE = "modes.csv", "modes.json"
DEFAULT_TARGET = 0.97
SINGLE = "single"
FAMILIES = {
    "one replica": (SINGLE,),
    "synchronous": ("synchronous", "synchronous,compressed=one_bit", "synchronous,compressed=top_k",
                    "sharded", "parameter_server", "synchronous,overlap=yes"),
    "asynchronous and local steps": ("downpour", "ssp", "local_sgd", "token_ring"),
    "threads of one process": ("hogwild", "threads_over_samples", "actors_learner"),
    "parts of the model": ("model_parallel", "pipeline"),
    "hybrid": (),
}


@functools.cache
def columns() -> list[tuple[str, ...]]:
    """Name, type, unit and meaning of the columns of modes.csv."""
    return schema.documented_columns("docs/results-format.md", "modes")


class Setting(NamedTuple):
    """What all seeds have in common."""
    network: str
    mode: str
    use: str
    threads: int
    ranks: int
    hosts: int
    batch: int
    optimizer: str


class Interval(NamedTuple):
    """A median over the seeds, and its interval. Any of them may be infinite."""
    median: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Compared:
    """A mode with all its seeds."""
    setting: Setting
    trainings: list[Training]
    target: float

    @property
    def mode(self) -> str:
        return self.setting.mode

    @property
    def rate(self) -> Interval | None:
        """Samples per second."""
        rates = self.last("samples_per_s")
        return interval(rates) if rates else None

    @property
    def samples_per_s(self) -> float | None:
        return self.rate.median if self.rate else None

    def last(self, column: str) -> list[float]:
        """The last value of every seed that has one: some columns are filled at evaluations
        only."""
        found = [[row[column] for row in training if row[column] is not None]
                 for training in self.trainings]
        return [values[-1] for values in found if values]

    def mean(self, column: str) -> float | None:
        values = self.last(column)
        return math.fsum(values) / len(values) if values else None

    def first_at_target(self) -> list[Row]:
        """The first row of every seed that reached the target."""
        rows = (next((row for row in training if (row["accuracy"] or 0) >= self.target), None)
                for training in self.trainings)
        return [row for row in rows if row]

    @property
    def reached(self) -> int:
        return len(self.first_at_target())

    def to_target(self, column: str) -> Interval:
        values = [row[column] for row in self.first_at_target()]
        return interval([*values, *[math.inf] * (len(self.trainings) - len(values))])

    @property
    def final_accuracy(self) -> Interval | None:
        values = self.last("accuracy")
        return interval(values) if values else None

    @property
    def final_loss(self) -> float | None:
        means = [math.fsum(losses) / len(losses) for training in self.trainings
                 if (losses := [row["loss"] for row in training
                                if row["epoch"] == training[-1]["epoch"]
                                and row["loss"] is not None])]
        return statistics.median(means) if means else None


def interval(values: Sequence[float]) -> Interval:
    return Interval(*median_with_interval(values))


def compare(run: Run, target: float | None = None) -> list[Compared]:
    """Every mode of train.csv in the order of the file, without simulated trainings. The target is
    that of modes.json by default."""
    target = target or recorded_target(run.folder) or DEFAULT_TARGET
    found = grouped(latest_trainings([row for row in run.train or []
                                      if row.get("network") and not row.get("platform")]),
                    lambda training: setting_of(training[0]))
    return [Compared(setting, trainings, target) for setting, trainings in found.items()]


def setting_of(row: Row) -> Setting:
    return Setting(row["network"], row["mode"], row["use"], row["threads"] or 1, row["ranks"] or 1,
                   row["hosts"] or 1, row["batch"] or 0, row.get("optimizer") or "")


def by_network(found: Iterable[Compared]) -> dict[str, list[Compared]]:
    return grouped(found, lambda c: c.setting.network)


def several_modes(found: Iterable[Compared]) -> bool:
    return any(c.mode != SINGLE for c in found)


def recorded_target(folder: Path) -> float | None:
    rows = (read_json(folder / JSON_FILE) or {}).get("rows") or [{}]
    return rows[0].get("target_accuracy")


def family_of(mode: str) -> str:
    name = mode.partition(",")[0]
    return next((family for family, modes in FAMILIES.items() if name in modes), "hybrid")


def single_of(compared: Compared, among: Iterable[Compared]) -> Compared | None:
    """Single on the same network with the same rungs, threads and optimizer; of several, the
    nearest batch."""
    of = compared.setting
    return min((c for c in among if c.mode == SINGLE and c.setting.network == of.network
                and (c.setting.use, c.setting.threads, c.setting.optimizer)
                == (of.use, of.threads, of.optimizer)),
               key=lambda c: abs(c.setting.batch - of.batch), default=None)


def speedup(compared: Compared, among: Iterable[Compared]) -> float | None:
    single = single_of(compared, among)
    if single is None or not compared.samples_per_s or not single.samples_per_s:
        return None
    return compared.samples_per_s / single.samples_per_s


def fastest_first(found: Iterable[Compared]) -> list[Compared]:
    """By the time to the target; those that did not reach it by their accuracy."""
    return sorted(found, key=lambda c: (c.to_target("seconds").median,
                                        -(c.final_accuracy.median if c.final_accuracy else 0)))


def most_ranks(found: Sequence[Compared]) -> list[Compared]:
    """Every mode on its most ranks only."""
    most: dict[tuple[str, str], int] = {}
    for c in found:
        most[c.setting[:2]] = max(most.get(c.setting[:2], 0), c.setting.ranks)
    return [c for c in found if c.setting.ranks == most[c.setting[:2]]]


def labels_of(found: Iterable[Compared]) -> dict[Setting, str]:
    """The mode, and what tells it apart from other settings of the same mode."""
    settings = grouped((c.setting for c in found), lambda setting: setting.mode)
    return {setting: ", ".join([mode, *(part_of(setting, name) for name in Setting._fields
                                        if len({getattr(other, name) for other in same}) > 1)])
            for mode, same in settings.items() for setting in same}


def part_of(setting: Setting, name: str) -> str:
    value = getattr(setting, name)
    if name in ("network", "use", "optimizer"):
        return str(value)
    return f"batch {value}" if name == "batch" else f"{value} {name[:-1] if value == 1 else name}"


def row_of(compared: Compared, among: Sequence[Compared]) -> dict[str, Any]:
    time, samples = (compared.to_target(column) for column in ("seconds", "samples"))
    accuracy = compared.final_accuracy
    row = compared.setting._asdict() | {
        "all_reduce": compared.trainings[0][-1]["all_reduce"], "seeds": len(compared.trainings),
        "samples_per_s": compared.samples_per_s, "speedup_vs_single": speedup(compared, among),
        "staleness_max": max(compared.last("staleness_max"), default=None),
        "target_accuracy": compared.target, "reached": compared.reached,
        "time_to_target_s": time.median, "time_to_target_low_s": time.low,
        "time_to_target_high_s": time.high, "samples_to_target": samples.median,
        "final_accuracy": accuracy and accuracy.median,
        "final_accuracy_low": accuracy and accuracy.low,
        "final_accuracy_high": accuracy and accuracy.high, "final_loss": compared.final_loss}
    row |= {column: compared.mean(column) for column in (
        "bytes_per_step", "compute_share", "exposed_share", "hidden_share", "waiting_share",
        "staleness_mean")}
    return {name: written(row[name], kind) for name, kind, _, _ in columns()}


def written(value: Any, kind: str) -> Any:
    """As the result files have it: six digits; None where there is no finite number."""
    if value is None or kind == "text":
        return value
    if not math.isfinite(value):
        return None
    return int(value) if kind == "integer" else float(f"{value:.6g}")


def write(run: Run, found: Sequence[Compared]) -> list[Path]:
    """modes.csv and modes.json, and their columns in columns.json."""
    if not found:
        raise InputError(f"{run.folder / 'train.csv'}: no training that names its network; "
                         "expected those of make compare-modes")
    rows = [row_of(c, found) for c in found]
    names = [column[0] for column in columns()]
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows([{name: number_text(value) for name, value in row.items()} for row in rows])
    paths = [run.folder / CSV_FILE, run.folder / JSON_FILE]
    paths[0].write_text(text.getvalue(), encoding="utf-8")
    paths[1].write_text(json.dumps({"schema_version": schema.SCHEMA_VERSION, "columns": names,
                                    "rows": rows}, indent=1) + "\n", encoding="utf-8")
    describe(run.folder / schema.COLUMNS_FILE)
    return paths


def number_text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)


def describe(path: Path) -> None:
    """Adds the columns to columns.json, which has one column per line."""
    content = read_json(path) or {"schema_version": schema.SCHEMA_VERSION, "tables": {}}
    tables = content["tables"] | {"modes": [
        {key: value for key, value in zip(("name", "type", "unit", "meaning"), column) if value}
        for column in columns()]}
    lists = [f'  {json.dumps(name)}: [\n'
             + ",\n".join(f"   {json.dumps(column, separators=(',', ':'))}" for column in columns)
             + "\n  ]" for name, columns in tables.items()]
    path.write_text(f'{{\n "schema_version": {content["schema_version"]},\n "tables": {{\n'
                    + ",\n".join(lists) + "\n }\n}\n", encoding="utf-8")
