"""The results in one line each: the best rung of a primitive, the training step of a network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from plots.data import schema
from plots.data.names import Rung
from plots.data.ratios import Ladder, Resource, geometric_mean, mean_ratio
from plots.data.reading import Row, grouped
from plots.data.steps import Configuration, by_network

# Columns of the rates that are not GB/s of what a problem reads and writes.
GFLOPS = ("gflops_per_s", "GFLOP/s")
RATES = {"matmul": GFLOPS, "convolution": GFLOPS, "low_precision": GFLOPS,
         "all_reduce": ("busbw_gbytes_per_s", "GB/s")}


class BestRung(NamedTuple):
    """Geometric means over `problems` problems; None where the run has no such column."""
    rung: Rung
    over_first: float | None
    over_vendor: float | None
    # Of the rung that gains most without Winograd and FFT, over libraries without.
    over_vendor_equal: float | None
    equal_rung: Rung | None
    percent_of_roof: float | None
    problems: int
    rate: tuple[float | None, str] = (None, "")  # and its unit


def best_rung(ladder: Ladder, direction: str | None, resource: Resource) -> BestRung | None:
    """Our own rung that gains most among those measured on the most problems. Rungs that are set
    apart, and all-reduces that compress, do not count, and serial loops, which run every problem,
    only if there is nothing else. Without a first rung to compare with, the shortest times
    decide."""
    found = []
    equal: list[tuple[tuple, float | None, Rung]] = []
    own = [rung for rung in ladder.measured_rungs if rung.technique != "vendor"
           and not ladder.is_set_apart(rung) and ladder.of(rung, direction, resource)]
    for rung in [rung for rung in own if rung.technique != "serial"] or own:
        rows = ladder.of(rung, direction, resource)
        if any(row.get("message_share") for row in rows):
            continue
        mean = mean_ratio(ladder.speedups(rung, direction, resource))
        seconds = geometric_mean(row["median_s"] for row in rows)
        rank = ((mean.count, mean.value) if mean else (0, 0.0), len(rows), -seconds)
        if not any(row.get("arithmetic") for row in rows):
            equal.append((rank, ladder.column_mean("speedup_vs_vendor_equal", rung, direction,
                                                   resource), rung))
        best = BestRung(rung, mean.value if mean else None,
                        ladder.column_mean("speedup_vs_vendor", rung, direction, resource), None,
                        None,
                        ladder.column_mean("percent_of_roof", rung, direction, resource),
                        mean.count if mean else len(rows))
        found.append((rank, best))
    if not found:
        return None
    best = max(found, key=lambda entry: entry[0])[1]
    _, over_vendor, rung = max(equal, key=lambda entry: entry[0], default=((), None, None))
    column, unit = RATES.get(ladder.primitive, ("gbytes_per_s", "GB/s"))
    rate = ladder.column_mean(column, best.rung, direction, resource)
    return best._replace(over_vendor_equal=over_vendor, equal_rung=rung, rate=(rate, unit))


def parts_of(ladder: Ladder) -> list[tuple[str, str | None]]:
    """Names and directions, of each of which one rung is the best: the whole primitive, or each
    direction where these are precisions, because no rung has them all."""
    if any(row["direction"] != row["precision"] for row in ladder.measured):
        return [(ladder.primitive, None)]
    return [(f"{ladder.primitive} {direction}", direction)
            for direction in sorted(ladder.directions)]


class StepComparison(NamedTuple):
    """Our step of a network on one resource, beside the libraries' and the first rung's."""
    own: Configuration
    vendor: Configuration | None
    first: Configuration | None  # `serial` or else `simd`, on the fewest threads


def step_comparisons(found: Sequence[Configuration]) -> list[StepComparison]:
    """One per network and resource: `best`, or else `cuda`, or else the fastest of our own."""
    lines = []
    for of_network in by_network(c for c in found if c.mode != "ablate").values():
        first = first_of(of_network, "serial") or first_of(of_network, "simd")
        for _, here in sorted(grouped(of_network, lambda c: c.resource).items()):
            own = (fastest(c for c in here if c.use == "best")
                   or fastest(c for c in here if c.use == "cuda")
                   or fastest(c for c in here if c.use not in ("vendor", "bf16", "cuda_tf32")))
            vendor = fastest(c for c in here if c.use == "vendor")
            if own:
                lines.append(StepComparison(own, vendor, first))
    return lines


def fastest(found: Iterable[Configuration]) -> Configuration | None:
    return min(found, key=lambda c: c.total_s, default=None)


def first_of(found: Iterable[Configuration], use: str) -> Configuration | None:
    """The configuration of this use on the fewest threads."""
    return min((c for c in found if c.use == use), key=lambda c: c.resource, default=None)


def is_noisy(row: Row) -> bool:
    """A measured row whose repetitions spread widely; bench writes so in the reason."""
    return row["status"] == "ok" and "noisy" in row["reason"]


def counts(rows: Sequence[Row]) -> dict[str, int]:
    """Rows of each status in the order of schema.STATUSES, and the noisy ones of the ok rows."""
    by_status = Counter(row["status"] for row in rows)
    return ({status: by_status[status] for status in schema.STATUSES}
            | {"noisy": sum(map(is_noisy, rows))})
