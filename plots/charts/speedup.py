"""ladder-<primitive>: speedup of each rung, geometric mean over the problems per direction."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.axes import Axes

from plots import style
from plots.charts.rung_rows import ROW_HEIGHT, RungRow, grid_of, label_rows, rung_rows
from plots.numbers import short
from plots.page import Page, caption, plain_log
from plots.ratios import Ladder, Mean, ladders, mean_ratio
from plots.reading import Run

# Width of the number behind a bar, relative to the bars, by the number of columns.
NUMBER_WIDTH = {1: 0.08, 2: 0.16, 3: 0.27}


def draw(run: Run) -> Iterator[tuple[str, Page | str]]:
    if run.summary is None:
        yield "ladder", "no summary.csv"
        return
    for ladder in ladders(run):
        yield f"ladder-{ladder.primitive}", draw_ladder(run, ladder)


def draw_ladder(run: Run, ladder: Ladder) -> Page | str:
    rows = rung_rows(ladder)
    means = {direction: [mean_ratio(ladder.speedups(row.rung, direction, row.resource))
                         for row in rows] for direction in ladder.directions}
    means = {direction: found for direction, found in means.items() if any(found)}
    if not means:
        return "no row has a speedup"
    # Rungs for problems that the first rung cannot compute, for example with an epilogue, have no
    # speedup.
    has_speedup = [any(of_row) for of_row in zip(*means.values())]
    rows = [row for row, has in zip(rows, has_speedup) if has]
    means = {direction: [mean for mean, has in zip(found, has_speedup) if has]
             for direction, found in means.items()}
    grid = grid_of(len(means))
    techniques = {row.rung.technique for row in rows}
    remark = (f"Geometric mean over the problems of suite {suites(ladder)}. Error bars: 95 % "
              "confidence. Below the dashed line: libraries.")
    if any(is_partial(found) for found in means.values()):
        remark += " (n): measured on n of the problems only."
    page = Page(
        f"{ladder.primitive}: speedup over {ladder.baseline}",
        caption(run, (row.resource for row in rows), remark),
        *grid, panel_height=0.45 + ROW_HEIGHT * len(rows),
        legend=style.technique_handles(techniques), legend_columns=7, share_x=True, share_y=True)
    styles = style.variant_styles(ladder.rungs)
    for axes, (direction, found) in zip(page.panels(), means.items()):
        count = max(mean.count for mean in found if mean)
        draw_direction(axes, rows, found, count, styles)
        problems = "1 problem" if count == 1 else f"{count} problems"
        axes.set_title(f"{direction}\n{problems}" if direction else problems, loc="left", fontsize="medium")
    page.hide_from(len(means))
    all_means = [mean for found in means.values() for mean in found if mean]
    low = min(1.0, *(mean.low for mean in all_means))
    high = max(1.0, *(mean.high for mean in all_means))
    first = page.panels()[0]
    # Room on the right for the number behind the longest bar.
    first.set_xlim(low / 1.1, high * (1.5 * high / low) ** NUMBER_WIDTH[grid[1]])
    for axes in page.panels():
        plain_log(axes.xaxis)
    return page


def is_partial(means: list[Mean | None]) -> bool:
    """Whether some rung was measured on fewer problems than another."""
    return len({mean.count for mean in means if mean}) > 1


def suites(ladder: Ladder) -> str:
    return ", ".join(dict.fromkeys(row["suite"] for row in ladder.measured if row["suite"]))


def draw_direction(axes: Axes, rows: list[RungRow], means: list[Mean | None], problems: int,
                   styles: dict[str, style.Style]) -> None:
    axes.set_xscale("log")
    label_rows(axes, rows)
    axes.axvline(1, color=style.REFERENCE, linewidth=0.7)
    for y, (row, mean) in enumerate(zip(rows, means)):
        if mean is None:
            continue
        look = styles[row.rung.name]
        axes.barh(y, mean.value - 1, left=1, height=0.62, alpha=0.85, label=row.rung.name,
                  **look.bar)
        error = [[mean.value - mean.low], [mean.high - mean.value]]
        # A white bar below keeps the bound visible inside a dark bar.
        axes.errorbar(mean.value, y, xerr=error, fmt="none", ecolor="white", elinewidth=2.4)
        axes.errorbar(mean.value, y, xerr=error, ecolor=style.EDGE, elinewidth=0.8, capsize=1.6,
                      capthick=0.6, label=row.rung.name, **look.marks)
        partly = f" ({mean.count})" if mean.count < problems else ""
        axes.annotate(f"{short(mean.value)}x{partly}", (max(mean.high, 1), y), xytext=(5, 0),
                      textcoords="offset points", va="center", fontsize=6.5)
    axes.set_xlabel("speedup")
