"""Training modes side by side, for each network:

modes-convergence-<network>  held-out error against time, loss against samples; a row per family
modes-time-<network>         time to the target, samples/s, shares of the time, bytes per step
modes-staleness-<network>    staleness of the gradients of asynchronous modes
modes-scaling-<network>      samples/s against the number of ranks
Lines are medians over the seeds, bands and bars their intervals. A mode has one colour everywhere.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, NullLocator

from plots.charts import style
from plots.charts.figure import Page, caption, plain_log
from plots.data.modes import (
    FAMILIES,
    SINGLE,
    Compared,
    by_network,
    compare,
    family_of,
    fastest_first,
    labels_of,
    most_ranks,
    setting_of,
    several_modes,
    single_of,
    speedup,
)
from plots.data.numbers import binary_size, plural, times
from plots.data.ratios import Resource
from plots.data.reading import Row, Run
from plots.data.trainings import median_curve, points_of, thinned

LOSS_POINTS = 40  # of a line; more rows are drawn as the means of so many ranges
MARKER_DISTANCE = 0.2  # of the diagonal of a panel
ROW_HEIGHT = 0.24  # inches, of a mode in modes-time
HIGHEST = 6.2      # inches, of all panels of a page
SHARES = {"compute": ("computing", "#D0D0D0", ""),
          "hidden": ("of it with communication hidden", "none", "/////"),
          "exposed": ("exposed communication", "#4F4F4F", ""),
          "waiting": ("waiting for other ranks", "#FFFFFF", "....")}


def draw(run: Run) -> Iterator[tuple[str, Page | str]]:
    found = compare(run) if run.train is not None else []
    if not several_modes(found):
        yield "modes", ("no train.csv" if run.train is None
                        else "train.csv has no mode beside single")
        return
    for network, here in by_network(found).items():
        shown = most_ranks(here)
        yield f"modes-convergence-{network}", draw_convergence(run, network, shown)
        yield f"modes-time-{network}", draw_times(run, network, shown)
        yield f"modes-staleness-{network}", draw_staleness(run, network, shown)
        yield f"modes-scaling-{network}", draw_scaling(run, network, here)


def about(run: Run, shown: Sequence[Compared], remark: str, interval: str = "") -> str:
    """The caption. `interval` is what shows the intervals: bands or bars."""
    seeds = max(len(c.trainings) for c in shown)
    parts = [f"{plural(seeds, 'seed')}."]
    if interval and seeds > 1:
        parts.append(f"Medians over the seeds; {interval}: "
                     + ("95 % interval." if seeds > 5 else "lowest to highest seed."))
    parts.append(remark)
    if any(c.setting.hosts > 1 for c in shown):
        parts.append(f"Network: {(run.environment or {}).get('network') or 'not recorded'}.")
    return caption(run, [Resource("", c.setting.ranks, c.setting.threads) for c in shown],
                   " ".join(parts))


# --- convergence ---------------------------------------------------------------------------------


def draw_convergence(run: Run, network: str, shown: Sequence[Compared]) -> Page | str:
    shown = [c for c in shown if c.final_accuracy]
    families = families_of(shown)
    if not families:
        return "no mode has an accuracy"
    looks, labels = style.mode_styles(c.mode for c in shown), labels_of(shown)
    page = Page(f"{network}: convergence of the training modes",
                about(run, shown, "Left: error on held-out images; lower and further left is "
                                  "better. Right: loss of "
                      "the training. Legends: from the highest final error to the "
                      "lowest.", "bands"),
                2 * len(families), 2, panel_height=min(1.75, HIGHEST / len(families)),
                width_ratios=(1.15, 1))
    errors = [100 * (1 - row["accuracy"]) for c in shown for training in c.trainings
              for row in training if row["accuracy"] is not None]
    # In place of an error of 0.
    least = min((error for error in errors if error > 0), default=1) / 2
    for (by_time, by_samples), (family, members) in zip(page.axes, families.items()):
        for c in reversed(members):
            look = looks[c.mode]
            error = [points_of(training, "seconds", "accuracy") for training in c.trainings]
            draw_line(by_time, [np.stack([p[:, 0], np.maximum(100 * (1 - p[:, 1]), least)], axis=1)
                                for p in error], look)
            draw_line(by_samples, [thinned(points_of(training, "samples", "loss"), LOSS_POINTS)
                                   for training in c.trainings], look)
        target = members[0].target
        by_time.axhline(100 * (1 - target), zorder=1, **style.DASHED | {"linewidth": 0.8})
        by_time.text(0.02, 100 * (1 - target), f"target {100 * target:g} %", fontsize=style.SMALL,
                     color=style.CAPTION, transform=by_time.get_yaxis_transform(), va="bottom",
                     bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.5})
        by_time.set_title(family, loc="left")
        by_time.set_ylabel("error (%)")
        by_samples.set_ylabel("loss")
        worst_first = sorted(members, key=lambda c: c.final_accuracy.median)
        by_samples.legend(handles=[looks[c.mode].handle(labels[c.setting]) for c in worst_first],
                          loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=style.SMALL,
                          handlelength=2.4, borderaxespad=0.3)
    for column, name, log in ((0, "training time (s)", True), (1, "samples", False)):
        panels = page.axes[:, column]
        share_limits(panels, log)
        panels[-1].set_xlabel(name)
        for axes in panels[:-1]:
            axes.tick_params(labelbottom=False)
    return page


def families_of(shown: Sequence[Compared]) -> dict[str, list[Compared]]:
    """The modes of each family after single, which is in all of them for comparison."""
    single = [c for c in shown if c.mode == SINGLE]
    found = {family: [c for c in shown if family_of(c.mode) == family and c.mode != SINGLE]
             for family in FAMILIES}
    return {family: single + members for family, members in found.items() if members}


def draw_line(axes: Axes, series: Sequence[np.ndarray], look: style.Style) -> None:
    curve = median_curve(series)
    if not len(curve):
        return
    x, median, low, high = curve.T
    axes.plot(x, median, markevery=MARKER_DISTANCE,
              **look.line | {"markersize": 3.5, "linewidth": 1.2})
    if len(series) > 1:
        axes.fill_between(x, low, high, color=look.colour, alpha=0.15, linewidth=0)


def share_limits(panels: Sequence[Axes], log_x: bool) -> None:
    """The same limits in all panels of a column, whose y axes are logarithmic."""
    for axes in panels:
        axes.set_yscale("log")
        if log_x:
            axes.set_xscale("log")
    for get, put in (("get_xlim", "set_xlim"), ("get_ylim", "set_ylim")):
        limits = [getattr(axes, get)() for axes in panels]
        for axes in panels:
            getattr(axes, put)(min(low for low, _ in limits), max(high for _, high in limits))
    for axes in panels:
        plain_log(axes.yaxis)
        if log_x:
            plain_log(axes.xaxis)
        else:
            axes.set_xlim(left=0)
            axes.xaxis.set_major_locator(MaxNLocator(5))
            axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k" if value else "0")


# --- where the time goes -------------------------------------------------------------------------


def draw_times(run: Run, network: str, shown: Sequence[Compared]) -> Page:
    ordered = fastest_first(shown)
    looks, labels = style.mode_styles(c.mode for c in shown), labels_of(shown)
    legend = [Patch(label=name, **share_patch(share)) for share, (name, _, _) in SHARES.items()]
    remark = "Fastest first; 1.57x: samples/s over single."
    if any(c.reached < len(c.trainings) for c in ordered):
        remark += " 3/5: only 3 of 5 seeds reached the target; the others count as infinite."
    page = Page(f"{network}: time to {100 * ordered[0].target:g} % held-out accuracy, and where it "
                "goes",
                about(run, shown, remark, "lines"), 4, 4,
                panel_height=0.55 + ROW_HEIGHT * len(ordered),
                legend=legend, legend_columns=4, share_y=True, width_ratios=(1.3, 0.85, 1.2, 0.85))
    to_target, rates, shares, sent = page.panels()
    for y, c in enumerate(ordered):
        draw_time(to_target, y, c, looks[c.mode])
        rates.barh(y, c.samples_per_s or 0, height=0.66, color=looks[c.mode].colour)
        rates.annotate(times(speedup(c, shown)), (c.samples_per_s or 0, y), xytext=(3, 0),
                       textcoords="offset points", va="center_baseline", fontsize=style.SMALL)
        draw_shares(shares, y, c)
        draw_bytes(sent, y, c.mean("bytes_per_step"), looks[c.mode])
    to_target.set_yticks(range(len(ordered)), [labels[c.setting] for c in ordered])
    to_target.set_ylim(len(ordered) - 0.4, -0.6)
    finish_times(to_target, ordered)
    rates.set_xlim(0, 1.35 * max((c.samples_per_s or 0 for c in ordered), default=1) or 1)
    rates.set_xlabel("samples/s")
    rates.xaxis.set_major_locator(MaxNLocator(3))
    rates.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k" if value >= 1000
                                    else f"{value:g}")
    shares.set_xlim(0, 100)
    shares.set_xlabel("share of the time (%)")
    finish_bytes(sent)
    for axes in page.panels():
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=False)
    return page


def draw_time(axes: Axes, y: int, c: Compared, look: style.Style) -> None:
    time = c.to_target("seconds")
    seeds = len(c.trainings)
    if not math.isfinite(time.low):
        axes.text(0.02, y, f"not reached, {reached_text(c)}", fontsize=style.SMALL, va="center",
                  color=style.CAPTION, transform=axes.get_yaxis_transform())
        return
    last = max(value for value in time if math.isfinite(value))
    axes.plot([time.low, last], [y, y], color=look.colour, linewidth=1.4, solid_capstyle="butt")
    if not math.isfinite(time.high):  # the interval has no upper end
        axes.annotate("", (last, y), xytext=(15, 0), textcoords="offset points",
                      arrowprops={"arrowstyle": "<-", "color": look.colour, "linewidth": 1.2,
                                  "shrinkA": 0, "shrinkB": 0})
    if math.isfinite(time.median):
        axes.plot([time.median], [y], **look.marks)
    text = f"{time.median:.3g}" if math.isfinite(time.median) else ""
    text += f" {reached_text(c)}" if c.reached < seeds else ""
    axes.annotate(text.strip(), (last, y), xytext=(5 if math.isfinite(time.high) else 18, 0),
                  textcoords="offset points", va="center_baseline", fontsize=style.SMALL)


def reached_text(c: Compared) -> str:
    return f"{c.reached}/{len(c.trainings)}"


def finish_times(axes: Axes, ordered: Sequence[Compared]) -> None:
    values = [value for c in ordered for value in c.to_target("seconds") if math.isfinite(value)]
    axes.set_xlabel("time to target (s)")
    if not values:
        axes.set_xticks([])
        return
    axes.set_xscale("log")
    # room on the right for the numbers
    axes.set_xlim(min(values) / 1.25, max(values) * (max(values) / min(values)) ** 0.35 * 1.4)
    plain_log(axes.xaxis)


def share_patch(share: str) -> dict:
    _, face, hatch = SHARES[share]
    return {"facecolor": face, "edgecolor": "#4F4F4F", "hatch": hatch, "linewidth": 0.4}


def draw_shares(axes: Axes, y: int, c: Compared) -> None:
    value = {share: 100 * (c.mean(f"{share}_share") or 0) for share in SHARES}
    left = 0.0
    for share in ("compute", "exposed", "waiting"):
        axes.barh(y, value[share], left=left, height=0.66, **share_patch(share))
        left += value[share]
    # Hidden communication is a part of the time of computing.
    hidden = min(value["hidden"], value["compute"])
    axes.barh(y, hidden, left=value["compute"] - hidden, height=0.66, **share_patch("hidden"))


def draw_bytes(axes: Axes, y: int, value: float | None, look: style.Style) -> None:
    if not value:
        axes.text(0.03, y, "none", fontsize=style.SMALL, va="center_baseline", color=style.CAPTION,
                  transform=axes.get_yaxis_transform())
        return
    axes.plot([value], [y], **look.marks)
    axes.annotate(binary_size(value), (value, y), xytext=(5, 0), textcoords="offset points",
                  va="center_baseline", fontsize=style.SMALL)


def finish_bytes(axes: Axes) -> None:
    values = [line.get_xdata()[0] for line in axes.lines]
    axes.set_xlabel("bytes per step")
    if not values:
        axes.set_xticks([])
        return
    axes.set_xscale("log")
    low, high = min(values), max(values)
    axes.set_xlim(low / 3, high * max(8.0, (high / low) ** 0.6))
    axes.xaxis.set_minor_locator(NullLocator())
    ticks = [2.0 ** power for power in range(0, 45, 5)
             if low / 3 <= 2.0 ** power <= axes.get_xlim()[1]]
    axes.set_xticks(ticks, [binary_size(tick) for tick in ticks])


# --- staleness -----------------------------------------------------------------------------------


def draw_staleness(run: Run, network: str, shown: Sequence[Compared]) -> Page | str:
    histograms = {c: found for c in shown if (found := staleness_of(run.staleness or [], c))}
    if not histograms:
        return "no mode has a staleness"
    looks, labels = style.mode_styles(c.mode for c in shown), labels_of(shown)
    by_mean = sorted(histograms, key=lambda c: c.mean("staleness_mean") or 0)
    page = Page(f"{network}: staleness of the gradients",
                about(run, list(histograms),
                      "Staleness: updates of the weights between reading them and applying "
                      "the gradient computed with them; of all seeds. Vertical lines: means."),
                1, 1, panel_height=2.3, legend_columns=3,
                legend=[looks[c.mode].handle(f"{labels[c.setting]}, mean "
                                             f"{c.mean('staleness_mean') or 0:.3g}")
                        for c in by_mean])
    axes = page.panels()[0]
    for c in by_mean:
        counts = histograms[c]
        total = sum(counts.values())
        x = range(max(counts) + 1)
        axes.plot(x, [100 * counts.get(value, 0) / total for value in x],
                  markevery=max(1, len(x) // 20), **looks[c.mode].line)
        axes.axvline(c.mean("staleness_mean") or 0, color=looks[c.mode].colour, linewidth=0.7,
                     alpha=0.6, linestyle=looks[c.mode].dashes)
    axes.set_xlim(-0.3, max(quantile(counts, 0.999) for counts in histograms.values()) + 1)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("staleness (updates)")
    axes.set_ylabel("share of the updates (%)")
    return page


def staleness_of(rows: Sequence[Row], c: Compared) -> dict[int, float]:
    """Updates by staleness, over all seeds. Earlier files have no batch and no optimizer."""
    batch, optimizer = c.setting.batch, c.setting.optimizer
    counts: Counter[int] = Counter()
    for row in rows:
        setting = setting_of({"batch": batch, "optimizer": optimizer} | row)
        if setting == c.setting and row["updates"]:
            counts[row["staleness"]] += row["updates"]
    return counts


def quantile(counts: dict[int, float], share: float) -> int:
    total, seen = sum(counts.values()), 0.0
    for value in sorted(counts):
        seen += counts[value]
        if seen >= share * total:
            return value
    return max(counts)


# --- scaling -------------------------------------------------------------------------------------


def draw_scaling(run: Run, network: str, found: Sequence[Compared]) -> Page | str:
    """Strong scaling: the batch of an update is that of single. Weak: that of a rank is."""
    panels: dict[str, dict[tuple, list[Compared]]] = {}
    for c in found:
        single = single_of(c, found)
        if c.mode == SINGLE or single is None or not c.samples_per_s:
            continue
        kind = {single.setting.batch: "strong: batch of an update constant",
                single.setting.batch * c.setting.ranks: "weak: batch of a rank "
                                                        "constant"}.get(c.setting.batch)
        if kind:
            key = (c.mode, c.setting.use, c.setting.threads, c.setting.hosts > 1,
                   c.setting.optimizer)
            panels.setdefault(kind, {}).setdefault(key, []).append(c)
    panels = {kind: lines for kind, groups in panels.items()
              if (lines := {key: group for key, group in groups.items() if len(group) > 1})}
    if not panels:
        return "no mode was trained on two or more numbers of ranks"
    chosen = [c for lines in panels.values() for group in lines.values() for c in group]
    singles = {single.setting: single for c in chosen if (single := single_of(c, found))}
    looks = style.mode_styles(c.mode for c in found)
    most = max(c.setting.ranks for c in chosen)
    last = {key: max(group, key=lambda c: c.setting.ranks).samples_per_s
            for lines in panels.values() for key, group in lines.items()}
    legend = [looks[key[0]].handle(key[0] + (", hosts" if key[3] else ""))
              for key in sorted(last, key=last.get, reverse=True)]
    legend += [looks[SINGLE].handle(SINGLE, line=False),
               Line2D([], [], label="ideal", **style.DASHED)]
    page = Page(f"{network}: samples/s with the number of ranks",
                about(run, [*chosen, *singles.values()],
                      "Ideal: samples/s of single times the ranks. Ranks that "
                      "share cores cannot reach it.", "bars"),
                len(panels), len(panels), panel_height=2.6, legend=legend, legend_columns=4,
                share_y=True, y_label="samples/s")
    for axes, (kind, lines) in zip(page.panels(), panels.items()):
        for single in singles.values():
            rate = single.samples_per_s
            axes.plot([1, most], [rate, rate * most], zorder=1, **style.DASHED)
            axes.plot([1], [rate], **looks[SINGLE].marks)
        for key, group in lines.items():
            group.sort(key=lambda c: c.setting.ranks)
            rates = np.array([c.rate for c in group]).T
            axes.errorbar([c.setting.ranks for c in group], rates[0],
                          yerr=[rates[0] - rates[1], rates[2] - rates[0]],
                          elinewidth=0.7, capsize=1.5, **looks[key[0]].line)
        axes.set_title(kind, loc="left")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        plain_log(axes.yaxis)
        counts = sorted({1, *(c.setting.ranks for group in lines.values() for c in group)})
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("ranks")
    return page
