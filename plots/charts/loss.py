"""loss: training loss against time and against the step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from plots import style
from plots.numbers import plural
from plots.page import Page, caption
from plots.reading import Row, Run
from plots.trainings import split_trainings

COLOURS = ("#000000", "#8C8C8C", "#555555", "#B0B0B0")
MOST_POINTS = 400   # longer series are drawn as the means of this many ranges of steps
MOST_MARKERS = 8


def draw(run: Run) -> Iterator[tuple[str, Page | str]]:
    yield "loss", draw_loss(run)


def draw_loss(run: Run) -> Page | str:
    if run.train is None:
        return "no train.csv"
    runs = split_trainings([row for row in run.train if row["loss"] is not None])
    if not runs:
        return "train.csv has no row with a loss"
    page = Page("training: loss against time and steps",
                caption(run, (), remark(runs)), 1, 2, panel_height=2.25, share_y=True,
                legend=[look(i).handle(label(rows)) for i, rows in enumerate(runs)],
                legend_columns=3)
    by_time, by_step = page.panels()
    for i, rows in enumerate(runs):
        for axes, column in ((by_time, "seconds"), (by_step, "step")):
            points = np.array([(row[column], row["loss"]) for row in rows
                               if row[column] is not None], dtype=float)
            if not len(points):
                continue
            points = thinned(points)
            markers = max(1, len(points) // MOST_MARKERS)
            axes.plot(points[:, 0], points[:, 1], markevery=markers, **look(i).line)
    by_time.set_xlabel("training time (s)")
    by_step.set_xlabel("training step")
    by_time.set_ylabel("training loss")
    by_time.set_ylim(bottom=0)
    return page


def thinned(points: np.ndarray) -> np.ndarray:
    if len(points) <= MOST_POINTS:
        return points
    return np.array([part.mean(axis=0) for part in np.array_split(points, MOST_POINTS)])


def look(index: int) -> style.Style:
    markers = tuple(style.MARKERS.values())
    return style.Style(COLOURS[index % len(COLOURS)], markers[index % len(markers)],
                       style.FILLS[index % 2], "", style.DASHES[index % len(style.DASHES)])


def label(rows: Sequence[Row]) -> str:
    accuracies = [row["accuracy"] for row in rows if row["accuracy"] is not None]
    name = rows[0]["mode"] or "single"
    return f"{name}, final accuracy {100 * accuracies[-1]:.1f} %" if accuracies else name


def remark(runs: Sequence[Sequence[Row]]) -> str:
    longest = max(len(rows) for rows in runs)
    rows = plural(longest, "row")
    if longest <= MOST_POINTS:
        return f"Up to {rows} of train.csv per training; accuracy is that on held-out pictures."
    return (f"Up to {rows} of train.csv per training, drawn as {MOST_POINTS} means of consecutive "
            "rows; accuracy is that on held-out pictures.")
