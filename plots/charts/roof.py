"""roof-<primitive>: rate of each rung as a share of the measured roof."""

from __future__ import annotations

from collections.abc import Iterator

from plots.charts import style
from plots.charts.figure import Page, caption, chart
from plots.charts.rung_rows import (
    ROW_HEIGHT,
    columns_of,
    handles,
    is_filled,
    label_rows,
    mark,
    rung_rows,
    shown_resources,
)
from plots.data.ratios import Ladder, geometric_mean, ladders
from plots.data.reading import Run


@chart("roof", needs="summary")
def draw(run: Run) -> Iterator[tuple[str, Page | str]]:
    for ladder in ladders(run):
        yield f"roof-{ladder.primitive}", draw_roof(run, ladder)


def draw_roof(run: Run, ladder: Ladder) -> Page | str:
    with_roof = [row for row in ladder.measured if row["percent_of_roof"]]
    if not with_roof:
        return "no row has a share of the roof"
    names = {row["variant"] for row in with_roof}
    rows = rung_rows(ladder, [rung for rung in ladder.measured_rungs if rung.name in names])
    shown = shown_resources(rows)
    directions = [d for d in ladder.directions if any(row["direction"] == d for row in with_roof)]
    highest = max(row["percent_of_roof"] for row in with_roof)
    remark = ("Marks: geometric mean over the problems; lines: from the lowest to the highest "
              "problem. Dashed: the roof, a measured peak or bandwidth.")
    if highest > 100:
        remark += (" Algorithms with fewer multiplications than the definition (Winograd) and "
                   "operands in a nearer cache can exceed it.")
    page = Page(
        f"{ladder.primitive}: share of the measured roof", caption(run, shown, remark),
        len(directions), columns_of(len(directions)),
        panel_height=0.5 + ROW_HEIGHT * len(rows), share_x=True, share_y=True,
        legend=handles(rows, shown), legend_columns=9)
    for axes, direction in zip(page.panels(), directions):
        label_rows(axes, rows)
        for y, row in enumerate(rows):
            look = style.technique_style(row.rung.technique)
            for resource in row.resources:
                shares = [r["percent_of_roof"] for r in ladder.of(row.rung, direction, resource)
                          if r["percent_of_roof"]]
                if not shares:
                    continue
                filled = is_filled(resource, shown)
                place = y if len(row.resources) == 1 else y + (0.17 if filled else -0.17)
                axes.plot([min(shares), max(shares)], [place, place], color=look.colour,
                          linewidth=1.0, alpha=0.7, zorder=2, solid_capstyle="butt")
                mark(axes, geometric_mean(shares), place, look, filled, label=row.rung.name,
                     zorder=3)
        axes.axvline(100, **style.DASHED)
        axes.set_title(direction, loc="left")
        axes.set_xlabel("% of the measured roof")
        axes.tick_params(labelbottom=True)
        axes.set_xlim(0, max(104, highest * 1.04))
    return page
