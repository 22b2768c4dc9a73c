"""Lines of rungs over a size: the few that tell the story are named at their ends, the others are
thin and grey."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from matplotlib.axes import Axes

from plots.charts import style
from plots.charts.figure import Page
from plots.charts.findings import fastest
from plots.charts.labels import End, label_ends
from plots.data.names import BY_MODEL, Rung, widest_builds
from plots.data.ratios import Ladder, is_set_apart, mean_ratio, rate_bounds, resource_of
from plots.data.reading import Row, grouped

LEAST_GAIN = 1.1   # over the rung below, for a name
MOST_NAMED = 7


def story(ladder: Ladder, rows: Sequence[Row]) -> list[str]:
    """The rungs to name among these rows, in ladder order: the first one, those that add more than
    10 % over the rung below, the fastest, and the fastest library."""
    present = {row["variant"] for row in rows}
    alike = [row for row in rows if not is_set_apart(row)]
    ours = fastest([row for row in alike if row["technique"] != "vendor"
                    and row["variant"] != BY_MODEL])
    libraries = fastest([row for row in alike if row["technique"] == "vendor"])
    always = {found[0]["variant"] for found in (ours, libraries) if found}
    if ladder.first_rung:
        always.add(ladder.first_rung.name)
    gains = {}
    for rung in widest_builds(ladder.measured_rungs):
        ratios = gains_among(ladder, rung, rows) if rung.name in present - always else []
        mean = mean_ratio(ratios)
        if mean and mean.value > LEAST_GAIN and mean.low > 1:
            gains[rung.name] = mean.value
    largest = sorted(gains, key=gains.get, reverse=True)[:max(0, MOST_NAMED - len(always))]
    return [rung.name for rung in ladder.rungs if rung.name in {*always, *largest} & present]


def gains_among(ladder: Ladder, rung: Rung, rows: Sequence[Row]) -> list:
    own = [row for row in rows if row["variant"] == rung.name]
    problems = {(row["direction"], resource_of(row)) for row in own}
    return [ratio for direction, resource in sorted(problems)
            for ratio in ladder.gains(rung, direction, resource)]


def draw_lines(page: Page, axes: Axes, rows: Sequence[Row], named: Collection[str],
               styles: dict[str, style.Style], x_of: Callable[[Row], float],
               y_of: Callable[[Row], float], ends: Sequence[End] = ()) -> None:
    """One line per variant among the rows, with 95 % bounds where it is named. `ends`: more names
    for the right edge."""
    ends = list(ends)
    for variant, found in grouped(rows, lambda row: row["variant"]).items():
        points = sorted(found, key=x_of)
        x, y = [x_of(row) for row in points], [y_of(row) for row in points]
        if variant not in named:
            axes.plot(x, y, color=style.BACKGROUND, linewidth=0.7, zorder=1.5, label=variant)
            continue
        look = styles[variant]
        bounds = [rate_bounds(row, value) if "ci_low_s" in row
                  else (value, value)  # simulated: none
                  for row, value in zip(points, y)]
        axes.errorbar(x, y, yerr=[[value - low for value, (low, _) in zip(y, bounds)],
                                  [high - value for value, (_, high) in zip(y, bounds)]],
                      elinewidth=0.6, capsize=0, label=variant, **look.line)
        ends.append(End(x[-1], y[-1], variant, look.colour))
    label_ends(page, axes, ends)
