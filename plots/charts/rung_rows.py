"""Rows of a chart that lists rungs from bottom to top as they are built, one row per rung."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from plots.charts import style
from plots.charts.figure import label_of_all
from plots.data.chain import best_of_branch, groups_of
from plots.data.names import Rung, split_isa, widest_builds
from plots.data.ratios import Ladder, Resource, first_and_last, resource_of, resources_of

ROW_HEIGHT = 0.175  # inches
MOST_COLUMNS = 3


class RungRow(NamedTuple):
    rung: Rung
    resources: list[Resource]  # that it ran on, of those that the chart shows
    label: str
    kind: str  # of its group


def rung_rows(ladder: Ladder, rungs: Sequence[Rung] | None = None) -> list[RungRow]:
    """Rungs, of `rungs` or of all measured ones, with their fewest and most threads: the main
    ladder, then what the compiler makes of its loops, the best rung of each branch, and the
    libraries. Builds for narrower instruction sets than the widest have the fewest threads only.
    The label names what a rung builds on where that is not the row below."""
    rungs = ladder.measured_rungs if rungs is None else rungs
    shown = first_and_last(resources_of(ladder.measured))
    widest = widest_builds(ladder.measured_rungs)
    rows: list[RungRow] = []
    for group in groups_of(ladder, rungs):
        for rung in [best_of_branch(ladder, group.rungs)] if group.is_branch else group.rungs:
            ran_on = sorted({resource_of(row) for row in ladder.of(rung)})
            here = [r for r in shown if r in ran_on and (rung in widest or r == ran_on[0])]
            if not here:
                continue
            base = ladder.base_of(rung)
            below = rows[-1].rung if rows else None
            remarks = []
            if base and (base != below or group.is_branch):
                remarks.append(f"on {split_isa(base.name)[0]}")
            if group.is_branch and len(group.rungs) > 1:
                remarks.append(f"best of {len(group.rungs)}")
            remark = f"  ({', '.join(remarks)})" if remarks else ""
            rows.append(RungRow(rung, here, rung.name + remark, group.kind))
    return rows


def shown_resources(rows: Sequence[RungRow]) -> list[Resource]:
    return sorted({resource for row in rows for resource in row.resources})


def is_filled(resource: Resource, shown: Sequence[Resource]) -> bool:
    """Marks are filled for the most threads of a device, hollow for fewer."""
    return resource == max(r for r in shown if r.device == resource.device)


def mark(axes: Axes, x: float, y: float, look: style.Style, filled: bool, **others) -> None:
    axes.plot([x], [y], **(look.marks | {"fillstyle": "full", "markeredgecolor": look.edge,
                                         "markeredgewidth": 0.9,
                                         "markerfacecolor": look.colour if filled else "white"}
                           | others))


def handles(rows: Sequence[RungRow], shown: Sequence[Resource]) -> list[Line2D]:
    """The techniques, and what hollow and filled marks mean, unless all are filled."""
    filled = [r for r in shown if is_filled(r, shown)]
    hollow = [r for r in shown if r not in filled]
    marks = [Line2D([], [], marker="o", linestyle="none", markersize=4.5, color=style.EDGE,
                    markerfacecolor="white" if group is hollow else style.EDGE,
                    label=label_of_all(group)) for group in (hollow, filled)]
    return style.technique_handles({row.rung.technique for row in rows}) + (marks if hollow else [])


def columns_of(count: int) -> int:
    """The number of columns in a grid of `count` panels."""
    return 2 if count == 4 else min(count, MOST_COLUMNS)


def label_rows(axes: Axes, rows: list[RungRow]) -> None:
    """Names on the left, first rung at the bottom, a line between the groups."""
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.tick_params(axis="y", length=0)
    for i in range(1, len(rows)):
        if rows[i].kind != rows[i - 1].kind:
            axes.axhline(i - 0.5, color="#AAAAAA", linewidth=0.6, linestyle=(0, (3, 2)))
