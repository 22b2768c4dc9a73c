"""attribution-<problem>: what each technique buys over all orders: a line from least to most, its
ends alone and last, and the average."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.lines import Line2D

from plots.charts import style
from plots.charts.figure import Page, caption, plain_log
from plots.charts.findings import how_many_times
from plots.data.attribution import STEADY, Attribution, attributions, name_of
from plots.data.numbers import short, times
from plots.data.ratios import Resource
from plots.data.reading import Run

ROW_HEIGHT = 0.32  # inches
AVERAGE = {"marker": "o", "markersize": 6.5, "color": style.COLOURS["simd"]}
ALONE = {"marker": "o", "markersize": 5, "color": style.EDGE, "markerfacecolor": "white"}
LAST = {"marker": "o", "markersize": 5, "color": style.EDGE}
RANGE = {"color": style.COLOURS["simd"], "linewidth": 3, "alpha": 0.35, "solid_capstyle": "butt"}


def draw(run: Run) -> Iterator[tuple[str, Page | str]]:
    found = attributions(run)
    if not found:
        yield "attribution", "no attribution.csv"
    for one in found:
        yield f"attribution-{one.problem if one.primitive == 'step' else one.primitive}", \
            draw_attribution(run, one)


def finding(found: Attribution) -> str:
    row = found.techniques[0]
    name = name_of(row)
    verb = "buys" if name.startswith(("a ", "the ")) or not name.endswith("s") else "buy"
    how = (f"{how_many_times(row['average'])}, whatever came before"
           if row["most"] / row["least"] <= STEADY else
           f"{short(row['least'])} to {how_many_times(row['most'])}, by what is there already")
    return f"{name[0].upper()}{name[1:]} {verb} the most: {how}"


def draw_attribution(run: Run, found: Attribution) -> Page:
    rows = found.techniques
    on = Resource("", 1, found.threads)
    page = Page(
        f"{found.primitive} {found.problem}: gain of each technique over all orders",
        caption(run, [on], f"Shape: {found.shape}. Time without the technique / time with it, "
                           "beside every set of the others. Average: of the logarithm over all "
                           "orders (Shapley value); the averages multiply to "
                           f"{times(found.total['average'])}."),
        1, 1, panel_height=0.55 + ROW_HEIGHT * len(rows), finding=finding(found),
        legend=[Line2D([], [], label="least to most", **RANGE),
                *(Line2D([], [], label=label, linestyle="none", **look) for label, look in
                  (("alone", ALONE), ("last", LAST), ("average", AVERAGE)))])
    axes = page.axes[0, 0]
    axes.axvline(1, color=style.REFERENCE, linewidth=0.7)
    for y, row in enumerate(rows):
        axes.plot([row["least"], row["most"]], [y, y], **RANGE)
        for column, look in (("average", AVERAGE), ("alone", ALONE), ("last", LAST)):
            axes.plot([row[column]], [y], linestyle="none", **look)
        axes.text(1.01, y, times(row["average"]), transform=axes.get_yaxis_transform(),
                  va="center_baseline", fontsize=style.SMALL)
    axes.set_yticks(range(len(rows)), [name_of(row) for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xscale("log")
    axes.set_xlim(min(1.0, *(row["least"] for row in rows)) / 1.15,
                  max(1.0, *(row["most"] for row in rows)) * 1.15)
    plain_log(axes.xaxis)
    axes.set_xlabel("times as fast")
    return page
