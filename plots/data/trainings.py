"""The trainings of train.csv, which may hold several, one after another or interleaved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from plots.data.numbers import plural
from plots.data.reading import Row, grouped
from plots.data.samples import median_with_interval

# The columns that tell trainings apart; only simulated ones have the first two. Files of earlier
# versions have only the mode.
IDENTITY = ("platform", "slow", "network", "use", "mode", "threads", "ranks", "hosts",
            "device", "seed", "batch", "optimizer")

Training = list[Row]


def identity(row: Row) -> tuple:
    return tuple(row.get(column) for column in IDENTITY)


def split_trainings(rows: Sequence[Row]) -> list[Training]:
    """One list per training: another identity, or a step number that does not grow, starts the next
    one."""
    trainings: list[Training] = []
    current_of: dict[tuple, Training] = {}
    for row in rows:
        key = identity(row)
        current = current_of.get(key)
        if current is None or (row["step"] or 0) <= (current[-1]["step"] or 0):
            current = current_of[key] = []
            trainings.append(current)
        current.append(row)
    return trainings


def latest_trainings(rows: Sequence[Row]) -> list[Training]:
    """Without those that were begun again later, as a resumed run does with the one that was
    stopped."""
    return list({identity(training[0]): training for training in split_trainings(rows)}.values())


def groups_of(rows: Sequence[Row]) -> dict[str, list[Training]]:
    """The trainings that differ in nothing but the seed, by name."""
    trainings = latest_trainings(rows) if rows and "seed" in rows[0] else split_trainings(rows)
    groups = grouped(trainings, lambda training: identity(training[0] | {"seed": None})
                     if "seed" in training[0] else id(training))
    same = grouped(groups.values(), lambda group: name_of(group[0][0]))
    found: dict[str, list[Training]] = {}
    for plain, alike in same.items():
        differing = [column for column in ("use", "threads", "batch", "optimizer")
                     if len({group[0][0].get(column) for group in alike}) > 1]
        for group in alike:
            full = name = ", ".join([plain, *part_names(group[0][0], differing)])
            number = 2
            while name in found:
                name, number = f"{full} ({number})", number + 1
            found[name] = group
    return found


def name_of(row: Row) -> str:
    """Network, mode and ranks: mnist_cnn, ssp,bound=2, 4 ranks; of a simulation its cluster and
    slow rank."""
    ranks, hosts = row.get("ranks") or 1, row.get("hosts") or 1
    where = f"{plural(ranks, 'rank')} on {hosts} hosts" if hosts > 1 else plural(ranks, "rank")
    if row.get("platform"):
        where = f"{ranks} nodes of {row['platform']}"
    slow = row.get("slow") or "none"
    parts = [row.get("network"), row["mode"] or "single", where if ranks > 1 else "",
             f"slow rank: {slow}" if slow != "none" else ""]
    return ", ".join(part for part in parts if part)


def part_names(row: Row, columns: Sequence[str]) -> list[str]:
    """What tells trainings of one name apart: use simd, batch 20, adam."""
    return [f"{row[column]}" if column == "optimizer" else f"{column} {row[column]}"
            for column in columns if row.get(column)]


def points_of(training: Training, x: str, y: str) -> np.ndarray:
    """Pairs of both columns, without the rows where one is empty."""
    return np.array([(row[x], row[y]) for row in training
                     if row[x] is not None and row[y] is not None], dtype=float).reshape(-1, 2)


def thinned(points: np.ndarray, most: int) -> np.ndarray:
    """Longer series become the means of that many ranges."""
    if len(points) <= most:
        return points
    return np.array([part.mean(axis=0) for part in np.array_split(points, most)])


def median_curve(series: Sequence[np.ndarray]) -> np.ndarray:
    """Over the k-th points of all series: median of x, then median of y with its interval. Ends
    where fewer than half of the series go on."""
    return np.array(
        list(median_points([points for points in series if len(points)]))).reshape(-1, 4)


def median_points(series: Sequence[np.ndarray]) -> Iterator[tuple[float, float, float, float]]:
    k = 0
    while len(here := [points[k] for points in series if k < len(points)]) * 2 > len(series):
        yield (float(np.median([x for x, _ in here])), *median_with_interval([y for _, y in here]))
        k += 1
