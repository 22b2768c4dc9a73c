"""noise: the time of the calibration loop around every repetition."""

from __future__ import annotations

from matplotlib.lines import Line2D

from plots.charts import style
from plots.charts.figure import Page, caption, chart, plain_log
from plots.data.numbers import percent, plural
from plots.data.ratios import resource_of
from plots.data.reading import Run
from plots.data.samples import is_marked


@chart("noise", needs="samples")
def draw(run: Run) -> Page | str:
    points = [(i, row) for i, row in enumerate(run.samples, start=1) if row["calibration_ratio"]]
    if not points:
        return "samples.csv has no calibration ratio"
    kept = [(i, row["calibration_ratio"]) for i, row in points if not is_marked(row)]
    marked = [(i, row["calibration_ratio"]) for i, row in points if is_marked(row)]
    looks = (
        (f"kept ({plural(len(kept), 'repetition')})", kept,
         {"marker": ".", "color": "#8C8C8C", "markersize": 3}),
        (f"disturbed, left out ({plural(len(marked), 'repetition')})", marked,
         {"marker": "x", "color": "#000000", "markersize": 3.5, "markeredgewidth": 0.7}))
    remark = "Training steps are not drawn."
    sentence = (run.environment or {}).get("quiet_sentence")
    page = Page("machine noise: calibration loop around every repetition",
                caption(run, {resource_of(row) for _, row in points},
                        f"{sentence} {remark}" if sentence else remark),
                1, 1, panel_height=1.8,
                finding=f"{percent(100 * len(marked) / len(points))} of the repetitions were "
                        "disturbed and left out",
                legend=[Line2D([], [], linestyle="none", label=text, **marks)
                        for text, _, marks in looks])
    axes = page.axes[0, 0]
    for text, found, marks in looks:
        if found:
            # Thousands of dots: a bitmap in the SVG and PDF instead of as many shapes.
            axes.plot(*zip(*found), linestyle="none", rasterized=True, label=text, **marks)
    axes.axhline(1, color=style.REFERENCE, linewidth=0.7)
    ratios = [row["calibration_ratio"] for _, row in points]
    if max(ratios) / min(ratios) > 5:
        axes.set_yscale("log")
        plain_log(axes.yaxis)
    axes.set_xlabel("repetition, in order of time")
    axes.set_ylabel("time of the loop\n(1 = undisturbed)")
    return page
