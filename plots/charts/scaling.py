"""scaling-<primitive> and scaling-step: speedup with the number of threads, from three numbers on;
of two, tables.md has a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, NullLocator

from plots.charts import style
from plots.charts.figure import Page, caption
from plots.charts.findings import highest, how_many_times
from plots.charts.labels import End, label_ends
from plots.data.names import Rung, technique_in_name, widest_builds
from plots.data.ratios import (
    Ladder,
    Mean,
    Resource,
    ladders,
    mean_ratio,
    resource_of,
    resources_of,
)
from plots.data.reading import Run, grouped
from plots.data.scaling import thread_speedups
from plots.data.steps import Configuration, by_network, configurations

LOGARITHMIC_FROM = 8  # ratio of the most to the fewest threads
FEWEST_COUNTS = 3     # of threads, in a line
MOST_LINES = 12       # in a panel, whose height this many names have
TOO_FEW = "nothing was measured at three or more thread counts; tables.md has a table of two"

Series = tuple[str, style.Style, dict[int, Mean]]  # label, look, threads -> speedup


def draw(run: Run) -> Iterator[tuple[str, Page | str]]:
    if run.summary is None:
        yield "scaling", "no summary.csv"
    for ladder in ladders(run):
        yield f"scaling-{ladder.primitive}", draw_ladder(run, ladder)
    if run.step is None:
        yield "scaling-step", "no step.csv"
    else:
        yield "scaling-step", draw_steps(run, configurations(run.step))


def draw_ladder(run: Run, ladder: Ladder) -> Page | str:
    styles = style.variant_styles(ladder.rungs)
    panels: dict[str, list[Series]] = {}
    is_cut = False
    for direction in ladder.directions:
        lines = {rung: speedups for rung in widest_builds(ladder.measured_rungs)
                 if len(speedups := thread_speedups(ladder, rung, direction)) >= FEWEST_COUNTS}
        shown = sorted(lines, key=lambda rung: -speed(ladder, rung, direction))[:MOST_LINES]
        is_cut = is_cut or len(shown) < len(lines)
        if shown:
            panels[direction] = [(rung.name, styles[rung.name], speedups)
                                 for rung, speedups in lines.items() if rung in shown]
    if not panels:
        return TOO_FEW
    return draw_panels(
        run, f"{ladder.primitive}: speedup with the number of threads", panels,
        [r for r in resources_of(ladder.measured) if not r.device],
        "Speedup of each variant over itself on the fewest threads, geometric mean over the "
        "problems. Bars: 95 % confidence. Markers are shifted sideways. Dashed: ideal."
        + (f" Of each direction the {MOST_LINES} variants that are fastest on the most threads."
           if is_cut else ""),
        best_scaling(ladder))


def best_scaling(ladder: Ladder) -> str:
    """The rung with the highest speedup, over all directions, if the intervals tell it from the
    others."""
    found = {}
    for rung in widest_builds(ladder.measured_rungs):
        speedups = thread_speedups(ladder, rung, None)
        if len(speedups) > 1:
            found[rung.name] = max(speedups), speedups[max(speedups)]
    most = max((threads for threads, _ in found.values()), default=0)
    problems = max((mean.count for _, mean in found.values()), default=0)
    alike = [(name, mean) for name, (threads, mean) in found.items()
             if threads == most and mean.count == problems]
    if len(alike) < 2:
        return ""
    return highest(alike,
                   lambda name, value: f"{name} gains most from {most} threads: "
                                       f"{how_many_times(value)} as fast")


def speed(ladder: Ladder, rung: Rung, direction: str) -> float:
    """On the most threads, over the first rung."""
    most = max((resource_of(row) for row in ladder.of(rung, direction)
                if not resource_of(row).device), key=lambda resource: resource.threads)
    mean = mean_ratio(ladder.speedups(rung, direction, most))
    return mean.value if mean else 0


def draw_steps(run: Run, found: Sequence[Configuration]) -> Page | str:
    found = [c for c in found if c.mode != "ablate" and not c.resource.device]
    panels: dict[str, list[tuple[str, dict[int, Mean]]]] = {}
    labels: dict[str, str] = {}
    for network, here in by_network(found).items():
        groups = grouped(here, lambda c: (c.use, c.mode, c.resource.ranks))
        for (use, mode, _), group in groups.items():
            group.sort(key=lambda c: c.resource.threads)
            ratios = {c.resource.threads: group[0].total_s / c.total_s for c in group}
            if len(ratios) < FEWEST_COUNTS:
                continue
            speedups = {t: Mean(r, r, r, 1) for t, r in ratios.items()}
            label = use if mode in ("", "single") else f"{use}, {mode}"
            labels[label] = technique_in_name(use)
            panels.setdefault(network, []).append((label, speedups))
    if not panels:
        return TOO_FEW
    looks = style.distinct_styles(labels)
    with_looks = {network: [(label, looks[label], speedups) for label, speedups in series]
                  for network, series in panels.items()}
    return draw_panels(run, "training step: speedup with the number of threads", with_looks,
                       [c.resource for c in found],
                       "Speedup of each configuration over itself on the fewest threads. Markers "
                       "are shifted sideways. Dashed: ideal.")


def draw_panels(run: Run, title: str, panels: dict[str, list[Series]],
                resources: Sequence[Resource], remark: str, finding: str = "") -> Page:
    columns = min(2, len(panels))
    page = Page(title, caption(run, resources, remark), len(panels), columns, share_y=True,
                panel_height=2.3 if len(panels) == columns else 2.0, finding=finding,
                y_label="speedup")
    for axes, (name, series) in zip(page.panels(), panels.items()):
        draw_panel(page, axes, series)
        axes.set_title(name, loc="left")
    highest = max(mean.high for group in panels.values() for _, _, speedups in group
                  for mean in speedups.values())
    most = max(threads / min(speedups) for group in panels.values() for _, _, speedups in group
               for threads in speedups)
    if most < LOGARITHMIC_FROM:
        page.axes[0, 0].set_ylim(0, 1.06 * max(highest, most))
    else:
        for axes in page.panels()[:len(panels)]:
            axes.set_xscale("log", base=2)
            set_ticks(axes.xaxis, threads_of(panels))
        page.axes[0, 0].set_yscale("log", base=2)
        page.axes[0, 0].yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    return page


def threads_of(panels: dict[str, list[Series]]) -> list[int]:
    return sorted({threads for series in panels.values() for _, _, speedups in series
                   for threads in speedups})


def set_ticks(axis: Axis, counts: list[int]) -> None:
    axis.set_major_locator(FixedLocator(counts))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_locator(NullLocator())


def draw_panel(page: Page, axes: Axes, series: list[Series]) -> None:
    counts = threads_of({"": series})
    axes.plot([counts[0], counts[-1]], [1, counts[-1] / counts[0]], zorder=1, **style.DASHED)
    # Shifted sideways at every thread count: markers and error bars do not hide one another.
    ends = []
    for i, (label, look, speedups) in enumerate(series):
        shift = 1 + 0.022 * (i - (len(series) - 1) / 2)
        values = list(speedups.values())
        axes.errorbar([threads * shift for threads in speedups], [m.value for m in values],
                      yerr=[[m.value - m.low for m in values], [m.high - m.value for m in values]],
                      elinewidth=0.7, capsize=1.5, label=label, **look.line)
        last = max(speedups)
        ends.append(End(last * shift, speedups[last].value, label, look.colour))
    label_ends(page, axes, ends)
    set_ticks(axes.xaxis, counts)
    axes.set_xlabel("threads")
