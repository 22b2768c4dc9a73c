"""step-<network>: one bar per configuration, its time by phase and its shares by layer and phase.

Configurations of `step --ablate` have a figure of their own, ablation-<network>. The left panel
compares times; the right one scales every bar to 100 %, which keeps the layers of fast
configurations readable.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from matplotlib.axes import Axes
from matplotlib.text import Text

from plots.charts import style
from plots.charts.figure import Page, caption
from plots.data.ratios import first_and_last
from plots.data.reading import Run
from plots.data.steps import Configuration, configurations, networks

ROW_HEIGHT = 0.26        # inches
UNACCOUNTED = "outside the layers"
ABLATION = "ablate"
MOST_BARS = 20
LEAST_NAMED = 3  # %; the name of a layer does not fit a shorter bar


def draw(run: Run) -> Iterator[tuple[str, Page | str]]:
    if run.step is None:
        yield "step", "no step.csv"
        return
    found = configurations(run.step)
    if not found:
        yield "step", "step.csv has no configuration with a total"
    for network in networks(found):
        here = [c for c in found if c.network == network]
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
    remark = ("Medians. Left: phases; thick line and number: the whole step. Right: layers. Phases "
              "need not add up to the step, because operations may overlap.")
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
        1, 2, panel_height=0.5 + ROW_HEIGHT * len(chosen), legend=handles, legend_columns=7,
        share_y=True, width_ratios=(1, 1.5))
    times, shares = page.panels()
    for y, configuration in enumerate(chosen):
        draw_phases(times, y, configuration, phases)
        draw_layers(page, shares, y, configuration, phases)
    times.set_yticks(range(len(chosen)), [c.label for c in chosen])
    times.set_ylim(len(chosen) - 0.4, -0.6)
    times.set_xlim(0, 1000 * max(max(c.total_s, layers_s(c)) for c in chosen) * 1.16)
    times.set_xlabel("time by phase (ms)")
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


def draw_phases(axes: Axes, y: int, configuration: Configuration, phases: list[str]) -> None:
    left = 0.0
    for phase in [*phases, UNACCOUNTED]:
        seconds = (unaccounted(configuration) if phase == UNACCOUNTED
                   else configuration.phase_s(phase))
        if seconds > 0:
            axes.barh(y, 1000 * seconds, left=left, height=0.7, **style.phase_patch(phase))
            left += 1000 * seconds
    total = 1000 * configuration.total_s
    axes.plot([total, total], [y - 0.43, y + 0.43], color=style.EDGE, linewidth=1.6,
              solid_capstyle="butt")
    axes.annotate(f"{total:.3g}", (max(left, total), y), xytext=(4, 0),
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
