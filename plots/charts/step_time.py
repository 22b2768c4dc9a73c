"""step-<network>: one bar per configuration, its time and its shares by layer and phase.

Configurations of `step --ablate` have a figure of their own, ablation-<network>. The left panel
compares times, on a logarithmic axis in the colours of the techniques; the right one scales every
bar to 100 %, which keeps the layers of fast configurations readable.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from matplotlib.axes import Axes
from matplotlib.text import Text

from plots.charts import style
from plots.charts.figure import Page, caption, chart, plain_log
from plots.charts.findings import how_many_times
from plots.data.numbers import milliseconds, short
from plots.data.overview import step_comparisons
from plots.data.ratios import first_and_last
from plots.data.reading import Run
from plots.data.steps import Configuration, by_network, configurations

ROW_HEIGHT = 0.26        # inches
UNACCOUNTED = "outside the layers"
ABLATION = "ablate"
MOST_BARS = 20
LEAST_NAMED = 3  # %; the name of a layer does not fit a shorter bar


@chart("step", needs="step")
def draw(run: Run) -> Iterator[tuple[str, Page | str]]:
    found = configurations(run.step)
    if not found:
        yield "step", "step.csv has no configuration with a total"
    for network, here in by_network(found).items():
        plain = [c for c in here if c.mode != ABLATION]
        ablated = [c for c in here if c.mode == ABLATION]
        if plain:
            yield f"step-{network}", draw_steps(run, f"{network}: time of one training step", plain)
        if ablated:
            title = f"{network}: time of one training step, one rung replaced"
            yield f"ablation-{network}", draw_steps(run, title,
                                                    with_originals(ablated, plain))


def with_originals(ablated: list[Configuration], plain: list[Configuration]) -> list[Configuration]:
    """Before best,matmul=serial_ijk comes best, if it was measured on the same resource."""
    wanted = {(c.use.partition(",")[0], c.resource) for c in ablated}
    return [c for c in plain if (c.use, c.resource) in wanted] + ablated


def draw_steps(run: Run, title: str, chosen: list[Configuration]) -> Page:
    remark = ("Medians. Left: the whole step. Right: its layers by phase; they need not add up to "
              "the step, because operations may overlap.")
    if len(chosen) > MOST_BARS:
        shown = first_and_last([c.resource for c in chosen])
        chosen = [c for c in chosen if c.resource in shown]
        remark += " Only the fewest and the most threads are shown; step.csv has the others."
    phases = list(dict.fromkeys(phase for c in chosen for phase in c.phases))
    handles = [style.phase_handle(phase) for phase in phases]
    if any(unaccounted(c) > 0 for c in chosen):
        handles.append(style.phase_handle(UNACCOUNTED))
    page = Page(
        title,
        caption(run, (c.resource for c in chosen), remark),
        2, 2, panel_height=0.5 + ROW_HEIGHT * len(chosen), legend=handles, legend_columns=7,
        share_y=True, width_ratios=(1, 1.5), finding=finding(chosen))
    times, shares = page.panels()
    for y, configuration in enumerate(chosen):
        draw_total(times, y, configuration)
        draw_layers(page, shares, y, configuration, phases)
    times.set_yticks(range(len(chosen)), [c.label for c in chosen])
    times.set_ylim(len(chosen) - 0.4, -0.6)
    totals = [1000 * c.total_s for c in chosen]
    times.set_xscale("log")
    low, high = min(totals) / 3, max(totals)
    times.set_xlim(low, high * (high / low) ** 0.3)  # room for the last number
    plain_log(times.xaxis)
    times.set_xlabel("time of a step (ms)")
    shares.set_xlim(0, 100)
    shares.set_xlabel("share by layer (%)")
    for axes in (times, shares):
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=False)
    return page


def unaccounted(configuration: Configuration) -> float:
    """Seconds of the step outside the layers' rows; 0 if operations overlap."""
    return max(0.0, configuration.total_s - layers_s(configuration))


def layers_s(configuration: Configuration) -> float:
    return sum(row["median_s"] or 0.0 for row in configuration.rows)


def finding(chosen: list[Configuration]) -> str:
    """What the fastest of our own steps takes, beside the first rungs and the libraries; on the
    place where it is fastest."""
    found = min((c for c in step_comparisons(chosen) if c.first and c.first is not c.own),
                key=lambda c: c.own.total_s, default=None)
    if found is None:
        return ""
    own = found.own
    text = (f"{own.network}: {milliseconds(own.total_s)} ms a step, "
            f"{how_many_times(found.first.total_s / own.total_s)} as fast as {found.first.use}")
    if found.vendor:
        text += f", {short(found.vendor.total_s / own.total_s)} times as fast as the libraries"
    return text


def draw_total(axes: Axes, y: int, configuration: Configuration) -> None:
    total = 1000 * configuration.total_s
    use = configuration.use.partition(",")[0]
    colour = style.technique_style({"compiler": "serial"}.get(use, use)).colour
    axes.barh(y, total, height=0.7, color=colour, edgecolor=style.EDGE, linewidth=0.5)
    axes.annotate(milliseconds(configuration.total_s), (total, y), xytext=(4, 0),
                  textcoords="offset points", va="center", fontsize=style.SMALL)


def draw_layers(page: Page, axes: Axes, y: int, configuration: Configuration,
                phases: list[str]) -> None:
    rest = unaccounted(configuration)
    whole = rest + layers_s(configuration)
    left = 0.0
    for phase in phases:
        for layer, seconds in layer_times(configuration, phase).items():
            width = 100 * seconds / whole
            axes.barh(y, width, left=left, height=0.7, **style.phase_patch(phase))
            if width > LEAST_NAMED:
                text = axes.text(left + width / 2, y, layer, ha="center", va="center_baseline",
                                 fontsize=style.SMALL, clip_on=True,
                                 color="white" if phase == "update" else style.TEXT)
                page.after_layout(partial(shorten, axes, text, width))
            left += width
    if rest > 0:
        axes.barh(y, 100 * rest / whole, left=left, height=0.7,
                  **style.phase_patch(UNACCOUNTED))


def shorten(axes: Axes, text: Text, width: float) -> None:
    """Leaves the whole name of a layer on its bar, or the layer without its part
    (conv1.backward_weights), or nothing."""
    room = 0.94 * axes.get_window_extent().width * width / 100
    for name in (text.get_text(), text.get_text().partition(".")[0]):
        text.set_text(name)
        if text.get_window_extent().width <= room:
            return
    text.set_text("")


def layer_times(configuration: Configuration, phase: str) -> dict[str, float]:
    """Seconds per layer in the order of the file; the rows of a layer in the phase are summed."""
    times: dict[str, float] = {}
    for row in configuration.rows:
        if row["phase"] == phase and row["median_s"]:
            times[row["layer"]] = times.get(row["layer"], 0.0) + row["median_s"]
    return times
