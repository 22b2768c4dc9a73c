"""Ratios of measured times: their 95 % bounds, geometric means over problems, gain per rung.

A ratio is the median over pairs of repetitions where samples.csv has them (samples.py). Otherwise
it is the ratio of the two medians, and its bounds come from the intervals of both rows: the
half-widths of the logarithms add in quadrature. The half-width of a geometric mean over n
problems is the root of the sum of squares, divided by n.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from plots.data.names import BY_MODEL, Rung, is_cpu, ladder_order, resolve_builds_on
from plots.data.numbers import plural
from plots.data.reading import Row, Run, grouped
from plots.data.samples import Samples, key_of, read_samples


class Resource(NamedTuple):
    """Device, ranks and threads of a row; sorts in this order."""
    device: str
    ranks: int
    threads: int

    @property
    def label(self) -> str:
        if not is_cpu(self.device):
            return self.device
        threads = plural(self.threads, "thread")
        if self.ranks == 1:
            return threads
        ranks = plural(self.ranks, "rank")
        return ranks if self.threads == 1 else f"{ranks} x {threads}"


class Ratio(NamedTuple):
    value: float
    low: float
    high: float


class Mean(NamedTuple):
    """A geometric mean over `count` problems with its 95 % bounds."""
    value: float
    low: float
    high: float
    count: int


def resource_of(row: Row) -> Resource:
    device = row.get("device", "")  # samples.csv has no such column
    device = "" if is_cpu(device) else device
    return Resource(device, row["ranks"] or 1, row["threads"] or 1)


def resources_of(rows: Iterable[Row]) -> list[Resource]:
    return sorted({resource_of(row) for row in rows})


def first_and_last(resources: Sequence[Resource]) -> list[Resource]:
    """For every device and rank count, the fewest and the most threads."""
    groups = grouped(sorted(resources), lambda r: (r.device, r.ranks))
    return [r for group in groups.values() for r in sorted({group[0], group[-1]})]


def geometric_mean(values: Iterable[float]) -> float | None:
    """None for no values; every value must be positive."""
    logarithms = [math.log(value) for value in values]
    return math.exp(math.fsum(logarithms) / len(logarithms)) if logarithms else None


def mean_ratio(ratios: Sequence[Ratio]) -> Mean | None:
    value = geometric_mean(ratio.value for ratio in ratios)
    if value is None:
        return None
    count = len(ratios)
    down = math.hypot(*(math.log(r.value / r.low) for r in ratios)) / count
    up = math.hypot(*(math.log(r.high / r.value) for r in ratios)) / count
    return Mean(value, value * math.exp(-down), value * math.exp(up), count)


def latest(rows: Iterable[Row]) -> list[Row]:
    """The last row of each measurement: a resumed run measures failed rows again."""
    found = {}
    for row in rows:
        key = (row["primitive"], row["variant"], row["precision"], row["suite"], resource_of(row),
               problem_key(row))
        found[key] = row
    return list(found.values())


def has_time(row: Row) -> bool:
    return row["status"] == "ok" and bool(row["median_s"])


def rounds_operands(row: Row) -> bool:
    """To a narrower format than the problem's; all_reduce rounds messages."""
    return (row["precision"] not in ("", "fp32", row["direction"])
            and not row.get("message_share"))


def is_set_apart(row: Row) -> bool:
    """Not to be compared with the others of its problem: with weights packed ahead, or operands
    rounded."""
    return row.get("prepacked") == "yes" or rounds_operands(row)


def has_problem(row: Row) -> bool:
    """False for the single row of a variant that cannot run on this machine at all."""
    return row["problem"] != ""


def problem_key(row: Row) -> tuple[str, str, str]:
    return (row["direction"], row["problem"], row["cache"])


def ratio_of_medians(slow: Row, fast: Row) -> Ratio:
    """How many times faster `fast` is than `slow`, as if they were measured independently."""
    slow_down, slow_up = relative_bounds(slow)
    fast_down, fast_up = relative_bounds(fast)
    value = slow["median_s"] / fast["median_s"]
    # The lower bound takes the low end of the slow row and the high end of the fast one.
    return Ratio(value, value * math.exp(-math.hypot(slow_down, fast_up)),
                 value * math.exp(math.hypot(slow_up, fast_down)))


def relative_bounds(row: Row) -> tuple[float, float]:
    """Logarithms of median/low and high/median; 0 without an interval."""
    median, low, high = row["median_s"], row["ci_low_s"], row["ci_high_s"]
    down = math.log(median / low) if low else 0.0
    up = math.log(high / median) if high else 0.0
    return max(down, 0.0), max(up, 0.0)


def rate_bounds(row: Row, rate: float) -> tuple[float, float]:
    """95 % bounds of a rate, which is the work divided by the median time."""
    down, up = relative_bounds(row)
    return rate * math.exp(-up), rate * math.exp(down)


def matching(row: Row, candidates: Iterable[Row]) -> Row | None:
    """The candidate on the same problem with as many threads, or with the most below that.

    A rung without threads is measured on one thread only; rungs on more threads are compared with
    this row.
    """
    same = [c for c in candidates
            if problem_key(c) == problem_key(row) and (c["ranks"] or 1) == (row["ranks"] or 1)
            and (c["threads"] or 1) <= (row["threads"] or 1)]
    return max(same, key=lambda c: c["threads"] or 1, default=None)


@dataclass
class Ladder:
    """The rungs of one primitive in order, with all its rows."""
    primitive: str
    rungs: list[Rung]
    rows: list[Row]      # of any status
    measured: list[Row]  # those with a time
    samples: Samples = field(default_factory=Samples)  # repetitions of the measured rows

    @property
    def directions(self) -> list[str]:
        return list(dict.fromkeys(row["direction"] for row in self.rows if has_problem(row)))

    def is_set_apart(self, rung: Rung) -> bool:
        return any(map(is_set_apart, self.of(rung)))

    def of(self, rung: Rung, direction: str | None = None,
           resource: Resource | None = None) -> list[Row]:
        """Measured rows of a rung, restricted to a direction and a resource if they are given."""
        return [row for row in self.measured if row["variant"] == rung.name
                and direction in (None, row["direction"])
                and resource in (None, resource_of(row))]

    @property
    def measured_rungs(self) -> list[Rung]:
        names = {row["variant"] for row in self.measured}
        return [rung for rung in self.rungs if rung.name in names]

    def base_of(self, rung: Rung) -> Rung | None:
        """The measured rung that this one builds on."""
        by_name = {r.name: r for r in self.measured_rungs}
        name = resolve_builds_on(rung, by_name)
        return by_name[name] if name else None

    @property
    def first_rung(self) -> Rung | None:
        return next((r for r in self.measured_rungs if not r.builds_on
                     and r.technique != "vendor" and r.name != BY_MODEL), None)

    def time_ratio(self, slow: Row, fast: Row) -> Ratio:
        """How many times faster `fast` is than `slow`."""
        if slow is fast:
            return Ratio(1.0, 1.0, 1.0)
        pairs = self.samples.paired_ratio(key_of(slow), key_of(fast))
        return Ratio(*pairs) if pairs else ratio_of_medians(slow, fast)

    def gains(self, rung: Rung, direction: str | None, resource: Resource) -> list[Ratio]:
        """Per problem, how many times faster than the rung that it builds on."""
        base = self.base_of(rung)
        return self._ratios(base, rung, direction, resource) if base else []

    def _ratios(self, base: Rung, rung: Rung, direction: str | None,
                resource: Resource) -> list[Ratio]:
        candidates = self.of(base, direction)
        pairs = ((matching(row, candidates), row) for row in self.of(rung, direction, resource))
        return [self.time_ratio(slow, fast) for slow, fast in pairs if slow is not None]

    @property
    def baseline(self) -> str:
        """The reference of speedups(): 'serial', or the first rung of a ladder without one."""
        first = self.first_rung
        if first is None or any(row["speedup_vs_serial"] for row in self.measured):
            return "serial"
        return first.name

    def speedups(self, rung: Rung, direction: str | None, resource: Resource) -> list[Ratio]:
        """Per problem, how many times faster than the baseline."""
        first = self.first_rung
        if self.baseline != "serial":
            return self._ratios(first, rung, direction, resource) if first else []
        candidates = self.of(first, direction) if first else []
        return [self._speedup(row, matching(row, candidates))
                for row in self.of(rung, direction, resource) if row["speedup_vs_serial"]]

    def _speedup(self, row: Row, serial: Row | None) -> Ratio:
        """The row's speedup, with the bounds of the ratio to the serial row if there is one."""
        value = row["speedup_vs_serial"]
        if serial is None:
            return Ratio(value, *rate_bounds(row, value))
        measured_now = self.time_ratio(serial, row)
        return Ratio(value, value * measured_now.low / measured_now.value,
                     value * measured_now.high / measured_now.value)

    def compared(self, rung: Rung, direction: str | None, resource: Resource) -> list[Row]:
        """The rows of a rung on problems that the first rung computes too; all, without such
        ones."""
        rows = self.of(rung, direction, resource)
        return [row for row in rows if row["speedup_vs_serial"]] or rows

    def column_mean(self, column: str, rung: Rung, direction: str | None,
                    resource: Resource) -> float | None:
        """Geometric mean of a positive column over the problems of compared()."""
        return geometric_mean(row[column] for row in self.compared(rung, direction, resource)
                              if row.get(column))


def ladders(run: Run) -> list[Ladder]:
    """One ladder per primitive, in the order of summary.csv."""
    summary = latest(run.summary or [])
    samples = read_samples(run.samples or [])
    found = []
    for primitive, rows in grouped(summary, lambda row: row["primitive"]).items():
        rungs = {row["variant"]: Rung(row["variant"], row["technique"], row["builds_on"],
                                      row["device"], row.get("idea") or "") for row in rows}
        timed = [row for row in rows if has_time(row)]
        found.append(Ladder(primitive, ladder_order(rungs.values()), rows, timed, samples))
    return found
