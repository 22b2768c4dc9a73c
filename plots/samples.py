"""Repetitions of the rows of summary.csv, for paired ratios.

The variants of a problem are measured in turn, one repetition each per round. Drift of the machine
affects all variants of a round equally, and cancels in the ratio of two times of the same round.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from plots.reading import Row

LEAST_PAIRS = 3

Rounds = dict[int, float]  # round: seconds of one call
Key = tuple  # identifies a row of samples.csv or summary.csv


def key_of(row: Row) -> Key:
    return (row["primitive"], row["direction"], row["variant"], row["problem"],
            row["threads"] or 1, row["ranks"] or 1)


def is_marked(row: Row) -> bool:
    """Whether the repetition was disturbed; the column is empty for the others."""
    return row["marked"] not in ("", "0", "no")


def rounds_by_key(samples: Iterable[Row]) -> dict[Key, Rounds]:
    """Undisturbed repetitions. A key with repeated rounds (warm and cold in one folder, or measured
    again) is left out, because its rounds are ambiguous."""
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
