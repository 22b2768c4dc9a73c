"""The repetitions behind the rows of summary.csv, for ratios taken pair by pair.

Variants of one problem are measured in turn, one repetition each per round, so that the drift of
the machine hits all alike: the two times of one round make a ratio that the drift hardly touches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from plots.reading import Row

LEAST_PAIRS = 3

Rounds = dict[int, float]  # round: seconds of one call
Key = tuple  # of a row of samples.csv or summary.csv


def key_of(row: Row) -> Key:
    return (row["primitive"], row["direction"], row["variant"], row["problem"],
            row["threads"] or 1, row["ranks"] or 1)


def is_marked(row: Row) -> bool:
    """Taken while the machine was slowed: the column says how it was disturbed, or nothing."""
    return row["marked"] not in ("", "0", "no")


def rounds_by_key(samples: Iterable[Row]) -> dict[Key, Rounds]:
    """Undisturbed repetitions. A key whose rounds repeat (warm and cold in one folder, or measured
    again) is left out: its rounds cannot be told apart."""
    found: dict[Key, Rounds] = {}
    repeated = set()
    for row in samples:
        if is_marked(row) or not row["seconds"]:
            continue
        rounds = found.setdefault(key_of(row), {})
        if row["repetition"] in rounds:
            repeated.add(key_of(row))
        rounds[row["repetition"]] = row["seconds"]
    return {key: rounds for key, rounds in found.items() if key not in repeated}


def paired_ratio(slow: Rounds, fast: Rounds) -> tuple[float, float, float] | None:
    """Median of slow / fast over the rounds that both have, with its 95 % confidence interval."""
    ratios = [seconds / fast[number] for number, seconds in slow.items() if number in fast]
    if len(ratios) < LEAST_PAIRS:
        return None
    return median_with_interval(ratios)


def median_with_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Order statistics: the narrowest symmetric pair that covers the median with at least 95 %.

    P(the median lies below the r-th smallest) = P(Binomial(n, 1/2) < r) may not pass 2.5 %; below
    six values not even the extremes do, and they are what is given.
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
