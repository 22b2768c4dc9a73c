"""Speedup of a rung or of a training step over itself on the fewest threads."""

from __future__ import annotations

from plots.data.names import Rung
from plots.data.ratios import Ladder, Mean, mean_ratio, problem_key, resource_of


def thread_speedups(ladder: Ladder, rung: Rung, direction: str | None) -> dict[int, Mean]:
    """By number of threads: the geometric mean over the problems."""
    rows = [row for row in ladder.of(rung, direction) if not resource_of(row).device]
    counts = sorted({row["threads"] or 1 for row in rows})
    base = {(problem_key(row), row["ranks"]): row for row in rows
            if (row["threads"] or 1) == counts[0]}
    speedups = {}
    for threads in counts:
        pairs = [(base.get((problem_key(row), row["ranks"])), row) for row in rows
                 if (row["threads"] or 1) == threads]
        mean = mean_ratio([ladder.time_ratio(slow, row) for slow, row in pairs if slow])
        if mean:
            speedups[threads] = mean
    return speedups
