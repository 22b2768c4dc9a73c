"""roof-<primitive>: rate of each rung as a share of the measured roof."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from plots import style
from plots.charts.rung_rows import ROW_HEIGHT, grid_of, label_rows, rung_rows
from plots.page import Page, caption
from plots.ratios import Ladder, geometric_mean, ladders
from plots.reading import Row, Run


def draw(run: Run) -> Iterator[tuple[str, Page | str]]:
    if run.summary is None:
        yield "roof", "no summary.csv"
        return
    for ladder in ladders(run):
        yield f"roof-{ladder.primitive}", draw_roof(run, ladder)


def bound_by_memory(row: Row) -> bool:
    """Roofs are fma_peak or a bandwidth such as stream_copy_L2."""
    return row["roof"].startswith("stream")


def draw_roof(run: Run, ladder: Ladder) -> Page | str:
    with_roof = [row for row in ladder.measured if row["percent_of_roof"]]
    if not with_roof:
        return "no row has a share of the roof"
    rows = [r for r in rung_rows(ladder)
            if any(row["percent_of_roof"] for row in ladder.of(r.rung, None, r.resource))]
    directions = [d for d in ladder.directions if any(row["direction"] == d for row in with_roof)]
    grid = grid_of(len(directions))
    techniques = {row.rung.technique for row in rows}
    page = Page(
        f"{ladder.primitive}: share of the measured roof",
        caption(run, (row.resource for row in rows),
                "Large markers: geometric mean over the problems. Dots: single problems, filled "
                "where the roof is the FMA peak, hollow where it is a bandwidth. Dashed: the roof. "
                "Algorithms with fewer multiplications than the definition (Winograd) can exceed "
                "it."),
        *grid, panel_height=0.45 + ROW_HEIGHT * len(rows), share_x=True, share_y=True,
        legend=style.technique_handles(techniques), legend_columns=7)
    styles = style.variant_styles(ladder.rungs)
    highest = max(row["percent_of_roof"] for row in with_roof)
    for axes, direction in zip(page.panels(), directions):
        label_rows(axes, rows)
        for y, row in enumerate(rows):
            found = [r for r in ladder.of(row.rung, direction, row.resource)
                     if r["percent_of_roof"]]
            look = styles[row.rung.name]
            for memory in (False, True):
                shares = [r["percent_of_roof"] for r in found if bound_by_memory(r) == memory]
                heights = y + np.linspace(-0.18, 0.18, len(shares)) if len(shares) > 1 else y
                axes.plot(shares, np.broadcast_to(heights, len(shares)), linestyle="none",
                          marker="o", markersize=2.4, color=look.colour, markeredgewidth=0.5,
                          fillstyle="none" if memory else "full", alpha=0.55)
            if found:
                axes.plot(geometric_mean(r["percent_of_roof"] for r in found), y,
                          label=row.rung.name, zorder=3, **look.marks)
        axes.axvline(100, color=style.REFERENCE, linewidth=0.9, linestyle=(0, (5, 2)))
        axes.set_title(direction, loc="left")
        axes.set_xlabel("% of the measured roof")
        axes.set_xlim(0, max(104, highest * 1.04))
    page.hide_from(len(directions))
    return page
