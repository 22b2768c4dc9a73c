"""predicted: time of every operation in a training step over the time of its plan alone."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from plots.charts import style
from plots.charts.figure import Page, caption, chart, plain_log
from plots.charts.rung_rows import columns_of
from plots.data.names import technique_in_name
from plots.data.ratios import geometric_mean
from plots.data.reading import Row, Run, grouped
from plots.data.steps import by_network, configurations

OTHER = "outside the ladders"
LOGARITHMIC_FROM = 5  # spread of the ratios


@chart("predicted", needs="step")
def draw(run: Run) -> Page | str:
    found = configurations(run.step)
    points = {network: [row for c in here for row in c.rows
                        if row["predicted_s"] and row["median_s"]]
              for network, here in by_network(found).items()}
    points = {network: rows for network, rows in points.items() if rows}
    if not points:
        return "no row of step.csv has a predicted time"
    technique_of = techniques(run)
    shown = {technique_of(row) for rows_of in points.values() for row in rows_of}
    handles = style.technique_handles(shown)
    if "" in shown:
        handles.append(style.technique_style("").handle(OTHER, line=False))
    handles.append(Line2D([], [], label="equal", **style.DASHED))
    page = Page("training step: time of each operation in the step over its time alone",
                caption(run, {c.resource for c in found},
                        "One marker per layer, phase and configuration. Time alone: the same plan "
                        "timed by itself, outside the step."),
                len(points), columns_of(len(points)), panel_height=2.25, legend=handles,
                legend_columns=8, share_x=True, share_y=True,
                y_label="time in the step / time alone")
    for axes, (network, rows_of) in zip(page.panels(), points.items()):
        draw_network(axes, rows_of, technique_of)
        axes.set_title(network, loc="left")
    plain_log(page.axes[0, 0].xaxis)
    ratios = [row["median_s"] / row["predicted_s"]
              for rows_of in points.values() for row in rows_of]
    if max(ratios) > LOGARITHMIC_FROM * min(ratios):
        page.axes[0, 0].set_yscale("log")
        plain_log(page.axes[0, 0].yaxis)
    return page


def draw_network(axes: Axes, rows: list[Row], technique_of: Callable[[Row], str]) -> None:
    axes.set_xscale("log")
    axes.axhline(1, zorder=1, **style.DASHED)
    for technique, found in grouped(rows, technique_of).items():
        marks = style.technique_style(technique).marks | {"markersize": 3.4}
        axes.plot([1000 * row["predicted_s"] for row in found],
                  [row["median_s"] / row["predicted_s"] for row in found], alpha=0.7,
                  label=technique or OTHER, **marks)
    ratio = geometric_mean(row["median_s"] / row["predicted_s"] for row in rows)
    axes.set_title(f"geometric mean {ratio:.2f}", loc="right", fontsize=style.SMALL)
    axes.set_xlabel("time alone (ms)")


def techniques(run: Run) -> Callable[[Row], str]:
    """A function from a row of step.csv to its technique, '' for layers outside the ladders.

    step.csv has no such column: the technique comes from summary.csv, or else from the name."""
    known = {row["variant"]: row["technique"] for row in run.summary or []}
    return lambda row: known.get(row["variant"]) or technique_in_name(row["variant"])
