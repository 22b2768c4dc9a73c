"""Rows of a chart that lists rungs from top to bottom, one per rung and resource."""

from __future__ import annotations

from typing import NamedTuple

from matplotlib.axes import Axes

from plots.names import Rung, widest_builds
from plots.ratios import Ladder, Resource, first_and_last, resource_of, resources_of

ROW_HEIGHT = 0.165  # inches
MOST_COLUMNS = 3


class RungRow(NamedTuple):
    rung: Rung
    resource: Resource
    label: str


def rung_rows(ladder: Ladder) -> list[RungRow]:
    """Rungs in ladder order, each on the fewest and the most threads. Builds for narrower
    instruction sets than the widest appear on the fewest threads only."""
    shown = first_and_last(resources_of(ladder.measured))
    widest = widest_builds(ladder.measured_rungs)
    rows = []
    for rung in ladder.measured_rungs:
        ran_on = {resource_of(row) for row in ladder.of(rung)}
        for resource in shown:
            if resource in ran_on and (rung in widest or resource == min(ran_on)):
                label = rung.name if len(shown) == 1 else f"{rung.name}, {resource.label}"
                rows.append(RungRow(rung, resource, label))
    return rows


def grid_of(count: int) -> tuple[int, int]:
    """Rows and columns of panels."""
    columns = min(count, MOST_COLUMNS)
    return -(-count // columns), columns


def label_rows(axes: Axes, rows: list[RungRow]) -> None:
    """Names on the left, first rung on top, a dashed line between our rungs and the libraries."""
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    is_vendor = [row.rung.technique == "vendor" for row in rows]
    for i in range(1, len(rows)):
        if is_vendor[i] != is_vendor[i - 1]:
            axes.axhline(i - 0.5, color="#AAAAAA", linewidth=0.6, linestyle=(0, (3, 2)))
