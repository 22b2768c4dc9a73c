"""Labels that overlap neither each other nor what is drawn. They are placed after the layout of the
page, in pixels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

from plots.charts import style
from plots.charts.figure import Page

GAP = 9.0       # points between the right edge of a panel and the labels there
DISTANCES = (5, 9, 14, 20, 28, 38, 50)  # points between a point and its label
DIRECTIONS = ((0, -1), (0, 1), (1, 0), (-1, 0), (1, -1), (-1, -1), (1, 1), (-1, 1))


class End(NamedTuple):
    """The last point of a line, in data, and its name."""
    x: float
    y: float
    text: str
    colour: str


def label_ends(page: Page, axes: Axes, ends: Sequence[End]) -> None:
    """Names the lines to the right of the panel, each joined to the end of its line."""
    if not ends:
        return
    texts = [axes.annotate(end.text, (1, 0.5), xycoords="axes fraction", xytext=(GAP, 0),
                           textcoords="offset points", va="center_baseline", fontsize=style.SMALL,
                           color=end.colour) for end in ends]

    def place() -> None:
        figure = page.figure
        points = figure.dpi / 72
        box = axes.get_window_extent()
        at = axes.transData.transform([(end.x, end.y) for end in ends])
        height = max(text.get_window_extent().height for text in texts) + points
        heights = spread(at[:, 1], height, box.y0 + height / 2, box.y1)
        for text, end, (x, y), to in zip(texts, ends, at, heights):
            text.xy = (1, (to - box.y0) / box.height)
            axes.add_line(Line2D(
                [(x - box.x0) / box.width, 1, 1 + (GAP - 1.5) * points / box.width],
                [(y - box.y0) / box.height, (y - box.y0) / box.height, (to - box.y0) / box.height],
                transform=axes.transAxes, clip_on=False, linewidth=0.5, color=end.colour,
                alpha=0.6, zorder=1))

    page.after_layout(place)


def spread(wanted: Sequence[float], least: float, low: float, high: float) -> list[float]:
    """Places near the wanted ones, at least `least` apart, from `low`; to `high` if they fit."""
    order = np.argsort(wanted, kind="stable")
    places = np.array(wanted, dtype=float)[order]
    for i in range(len(places)):
        places[i] = max(places[i], low if i == 0 else places[i - 1] + least)
    top = high
    for i in reversed(range(len(places))):
        places[i] = max(min(places[i], top), low + i * least)
        top = places[i] - least
    found = [0.0] * len(places)
    for place, i in zip(places, order):
        found[i] = float(place)
    return found


def label_clusters(page: Page, axes: Axes, clusters: Mapping[str, Sequence[tuple[float, float]]],
                   fixed: Sequence[Text] = ()) -> None:
    """Writes the name of each cluster near one of its points, in data: hides no point and no other
    text, and is nearer to its own points than to others."""
    texts = {name: axes.annotate(name, points[0], xytext=(0, -DISTANCES[0]),
                                 textcoords="offset points",
                                 ha="center", va="center", fontsize=style.SMALL + 0.5,
                                 color=style.TEXT,
                                 bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0,
                                       "pad": 0.3})
             for name, points in clusters.items()}
    for text in texts.values():
        text.set_in_layout(False)

    def place() -> None:
        marks = {name: axes.transData.transform(points) for name, points in clusters.items()}
        taken = [part for text in fixed for part in parts_of(text)]
        for name, text in texts.items():
            others = [found for other, found in marks.items() if other != name]
            taken.append(place_one(axes, text, clusters[name], marks[name],
                                   np.concatenate(others) if others else np.empty((0, 2)), taken))

    page.after_layout(place)


def place_one(axes: Axes, text: Annotation, points: Sequence[tuple[float, float]], own: np.ndarray,
              others: np.ndarray, taken: Sequence[Bbox]) -> Bbox:
    unit = axes.figure.dpi / 72
    size = text.get_window_extent()
    inside = axes.get_window_extent()
    texts = np.array([part.extents for part in taken]).reshape(-1, 4)
    best = None
    for point, (x, y) in zip(points, own):
        for distance in DISTANCES:
            for right, up in DIRECTIONS:
                offset = (right * (distance * unit + size.width / 2),
                          up * (distance * unit + size.height / 2))
                box = Bbox.from_bounds(x + offset[0] - size.width / 2,
                                       y + offset[1] - size.height / 2, size.width, size.height)
                padded = box.padded(3.5 * unit)
                hidden = count_inside(padded, own) + count_inside(padded, others)
                overlapped = count_overlapped(box.padded(unit), texts)
                outside = not (inside.x0 <= box.x0 and box.x1 <= inside.x1
                               and inside.y0 <= box.y0 and box.y1 <= inside.y1)
                ambiguous = distance_to(box, others) < 2 * distance_to(box, own)
                cost = (overlapped, outside, hidden, ambiguous, distance)
                if best is None or cost < best[0]:
                    best = cost, point, offset, box
    _, point, offset, box = best
    text.xy = point
    text.set_position((offset[0] / unit, offset[1] / unit))
    return box


def distance_to(box: Bbox, marks: np.ndarray) -> float:
    """From the edge of the box to the nearest mark, in pixels."""
    if not len(marks):
        return np.inf
    across = np.maximum(np.maximum(box.x0 - marks[:, 0], marks[:, 0] - box.x1), 0)
    up = np.maximum(np.maximum(box.y0 - marks[:, 1], marks[:, 1] - box.y1), 0)
    return float(np.hypot(across, up).min())


def slide_along(page: Page, axes: Axes, text: Text, places: Sequence[tuple[float, float]],
                points: Sequence[tuple[float, float]], fixed: Sequence[Text]) -> None:
    """Moves a text above or below a rising line: to the first of the places, in data, where it
    hides no other text and none of the points, or fewest."""
    def place() -> None:
        marks = axes.transData.transform(points)
        inside = axes.get_window_extent()
        taken = [part for other in fixed for part in parts_of(other)]

        def move(candidate: tuple[str, tuple[float, float]]) -> None:
            text.set_verticalalignment(candidate[0])
            text.set_position(candidate[1])

        def hidden(candidate: tuple[str, tuple[float, float]]) -> tuple[int, int]:
            move(candidate)
            parts = parts_of(text)
            outside = sum(part.x1 > inside.x1 or part.y1 > inside.y1 for part in parts)
            overlapped = sum(part.overlaps(other) for part in parts for other in taken)
            return overlapped, outside + sum(count_inside(part.padded(2.5 * axes.figure.dpi / 72),
                                                          marks)
                                             for part in parts)

        move(min([(side, where) for where in places for side in ("bottom", "top")], key=hidden))

    page.after_layout(place)


def count_inside(box: Bbox, marks: np.ndarray) -> int:
    return int(np.sum((marks[:, 0] > box.x0) & (marks[:, 0] < box.x1)
                      & (marks[:, 1] > box.y0) & (marks[:, 1] < box.y1)))


def count_overlapped(box: Bbox, extents: np.ndarray) -> int:
    """Each row of `extents` has x0, y0, x1 and y1."""
    return int(np.sum((extents[:, 0] <= box.x1) & (extents[:, 2] >= box.x0)
                      & (extents[:, 1] <= box.y1) & (extents[:, 3] >= box.y0)))


def parts_of(text: Text) -> list[Bbox]:
    """The area of a text. That of a slanted one is a row of small boxes along it."""
    box = text.get_window_extent()
    angle = text.get_rotation() % 180
    count = max(1, len(text.get_text()))
    if angle in (0, 90) or count == 1:
        return [box]
    side = text.get_fontsize() * text.figure.dpi / 72 * 1.2
    step = ((box.width - side) / (count - 1), (box.height - side) / (count - 1))
    left, bottom = (box.x0, box.y0)
    down = angle > 90
    return [Bbox.from_bounds(left + i * step[0],
                             (box.y1 - side - i * step[1]) if down else bottom + i * step[1],
                             side, side) for i in range(count)]
