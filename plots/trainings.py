"""The trainings of train.csv, which may hold several."""

from __future__ import annotations

from collections.abc import Sequence

from plots.reading import Row


def split_trainings(rows: Sequence[Row]) -> list[list[Row]]:
    """One list per training: a new mode or a decreasing step number starts the next one."""
    trainings: list[list[Row]] = []
    current_of: dict[str, list[Row]] = {}
    for row in rows:
        current = current_of.get(row["mode"])
        if current is None or (row["step"] or 0) < (current[-1]["step"] or 0):
            current = current_of[row["mode"]] = []
            trainings.append(current)
        current.append(row)
    return trainings
