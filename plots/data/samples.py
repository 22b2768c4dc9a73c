"""Repetitions of the rows of summary.csv, for paired ratios.

The variants of a problem are measured in turn, one repetition each per round. Drift of the machine
affects all variants of a round equally, and cancels in the ratio of two times of the same round.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from plots.data.reading import Row

LEAST_PAIRS = 3

USUAL_DEGREES = 6  # visits that the usual spread counts as
LEAST_ROWS = 20    # of a group with a usual spread of its own
PERCENTILE, OF_NORMAL = 93, 1.8119  # of |x|, in standard deviations
# Student's t of 6 degrees of freedom and more.
T_97_5 = (2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179)


class Time(NamedTuple):
    seconds: float  # of one call
    visit: int


Rounds = dict[int, Time]
Key = tuple  # identifies a row of samples.csv or summary.csv


@dataclass
class Samples:
    """Undisturbed repetitions of each row, and how far visits to a row differ in this run."""
    rounds: dict[Key, Rounds] = field(default_factory=dict)
    # Standard deviation of the logarithm between visits, by spread_group(); () is of all rows.
    usual_spreads: dict[tuple, float] = field(default_factory=dict)

    def usual_spread(self, key: Key) -> float:
        return self.usual_spreads.get(spread_group(key), self.usual_spreads.get((), 0.0))

    def paired_ratio(self, slow: Key, fast: Key) -> tuple[float, float, float] | None:
        """Median of slow / fast over the rounds that both have, with its 95 % confidence
        interval."""
        above, below = self.rounds.get(slow, {}), self.rounds.get(fast, {})
        visits: dict[int, list[float]] = {}
        for number, (seconds, visit) in above.items():
            if number in below:
                visits.setdefault(visit, []).append(seconds / below[number].seconds)
        if sum(map(len, visits.values())) < LEAST_PAIRS:
            return None
        return median_over_visits(list(visits.values()), self.usual_spread(slow))


def key_of(row: Row) -> Key:
    return (row["primitive"], row["direction"], row["variant"], row["problem"],
            row["threads"] or 1, row["ranks"] or 1)


def spread_group(key: Key) -> tuple:
    """Primitive, threads and ranks: rows whose visits are disturbed alike."""
    return key[0], *key[4:]


def is_marked(row: Row) -> bool:
    """Whether the repetition was disturbed; the column is empty for the others."""
    return row["marked"] not in ("", "0", "no")


def read_samples(rows: Iterable[Row]) -> Samples:
    """A key with repeated rounds (warm and cold in one folder, or measured again) is left out,
    because its rounds are ambiguous."""
    found: dict[Key, Rounds] = {}
    repeated = set()
    for row in rows:
        if is_marked(row) or not row["seconds"]:
            continue
        rounds = found.setdefault(key_of(row), {})
        if row["repetition"] in rounds:
            repeated.add(key_of(row))
        rounds[row["repetition"]] = Time(row["seconds"], row.get("visit") or 0)
    rounds = {key: rounds for key, rounds in found.items() if key not in repeated}
    return Samples(rounds, usual_spreads(rounds))


def usual_spreads(rows: dict[Key, Rounds]) -> dict[tuple, float]:
    """Like UsualSpread in harness/measure/statistics.hpp, but of the first two visits of each row
    alone: ratios cancel what slows all rows of a later visit."""
    differences: dict[tuple, list[float]] = {}
    for key, rounds in rows.items():
        visits: dict[int, list[float]] = {}
        for seconds, visit in rounds.values():
            visits.setdefault(visit, []).append(seconds)
        first = [np.median(visits[visit]) for visit in sorted(visits)[:2]]
        if len(first) == 2:
            for group in ((), spread_group(key)):
                differences.setdefault(group, []).append(abs(math.log(first[0] / first[1])))
    return {group: float(np.percentile(of_group, PERCENTILE)) / OF_NORMAL / math.sqrt(2)
            for group, of_group in differences.items() if not group or len(of_group) >= LEAST_ROWS}


def median_over_visits(visits: Sequence[Sequence[float]],
                       usual: float) -> tuple[float, float, float]:
    """As summarize_visits() in harness/measure/statistics.hpp: at least as wide as what the visits
    differ by."""
    value, low, high = median_with_interval([v for visit in visits for v in visit])
    count = len(visits)
    if count < 2:
        return value, low, high
    own = np.var([math.log(np.median(visit)) for visit in visits], ddof=1)
    degrees = USUAL_DEGREES + count - 1
    spread = math.sqrt((USUAL_DEGREES * usual ** 2 + (count - 1) * own) / degrees)
    half_width = T_97_5[min(count - 1, len(T_97_5) - 1)] * spread / math.sqrt(count)
    return value, min(low, value * math.exp(-half_width)), max(high, value * math.exp(half_width))


def median_with_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The narrowest symmetric pair of order statistics that covers the median with at least 95 %.

    P(the median lies below the r-th smallest) = P(Binomial(n, 1/2) < r) is at most 2.5 %. Fewer
    than six values have no such pair; the result is then their minimum and maximum.
    """
    ordered = np.sort(values)
    n = len(ordered)
    rank, tail = 1, 0.0
    for r in range(1, n // 2 + 1):
        tail += math.comb(n, r - 1) / 2 ** n
        if tail > 0.025:
            break
        rank = r
    return float(np.median(ordered)), float(ordered[rank - 1]), float(ordered[n - rank])
