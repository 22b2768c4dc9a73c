"""loss: training loss against time and against the step. A line is the median over the seeds of a
network, mode and number of ranks."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from matplotlib.lines import Line2D

from plots.charts import style
from plots.charts.figure import Page, caption, chart, plain_log
from plots.data.modes import family_of
from plots.data.numbers import plural
from plots.data.reading import Run
from plots.data.trainings import Training, groups_of, median_curve, points_of, thinned

MOST_POINTS = 400   # longer series are drawn as the means of this many ranges of steps
MOST_MARKERS = 8
MOST_NAMED = 8      # of more trainings, the legend names the families of modes
MOST_LINEAR = 4     # more lines come apart on a logarithmic axis only


@chart("loss", needs="train")
def draw(run: Run) -> Page | str:
    if any(row.get("platform") for row in run.train):
        return "the trainings are simulated"
    groups = groups_of([row for row in run.train if row["loss"] is not None])
    if not groups:
        return "train.csv has no row with a loss"
    looks = looks_of(groups)
    networks = {group[0][0].get("network") for group in groups.values()}
    only = next(iter(networks)) if len(networks) == 1 else None
    page = Page(f"{only or 'training'}: loss against time and steps",
                caption(run, (),
                        remark([training for group in groups.values() for training in group])),
                2, 2, panel_height=2.25, share_y=True,
                legend=handles(groups, looks, only),
                legend_columns=3)
    by_time, by_step = page.panels()
    for name, group in groups.items():
        for axes, column in ((by_time, "seconds"), (by_step, "step")):
            curve = median_curve([thinned(points_of(training, column, "loss"), MOST_POINTS)
                                  for training in group])
            if len(curve):
                axes.plot(curve[:, 0], curve[:, 1], markevery=max(1, len(curve) // MOST_MARKERS),
                          **looks[name].line)
    by_time.set_xlabel("training time (s)")
    by_step.set_xlabel("training step")
    by_time.set_ylabel("training loss")
    if len(groups) > MOST_LINEAR:
        by_time.set_yscale("log")
        plain_log(by_time.yaxis)
    else:
        by_time.set_ylim(bottom=0)
    return page


def looks_of(groups: dict[str, list[Training]]) -> dict[str, style.Style]:
    """The colour of the mode. Lines of one mode, as on two networks, differ in filling and dashes.
    If all are of one mode and several optimizers, the colour is that of the line."""
    modes = {name: group[0][0]["mode"] or "single" for name, group in groups.items()}
    optimizers = {group[0][0].get("optimizer") for group in groups.values()}
    if len(set(modes.values())) == 1 < len(optimizers):
        return style.series_styles(groups)
    if len(groups) > MOST_NAMED:
        families = style.family_styles()
        return {name: families[family_of(mode)] for name, mode in modes.items()}
    of_mode = style.mode_styles(modes.values())
    looks = {}
    for i, (name, mode) in enumerate(modes.items()):
        earlier = list(modes.values())[:i].count(mode)
        looks[name] = of_mode[mode] if not earlier else style.Style(
            of_mode[mode].colour, of_mode[mode].marker, style.FILLS[earlier % len(style.FILLS)],
            style.DASHES[(style.DASHES.index(of_mode[mode].dashes) + earlier) % len(style.DASHES)])
    return looks


def handles(groups: dict[str, list[Training]], looks: dict[str, style.Style],
            only: str | None) -> list[Line2D]:
    """A line per training, or per family of modes where there are many."""
    if len(groups) <= MOST_NAMED:
        return [looks[name].handle(label(name.removeprefix(f"{only}, "), group))
                for name, group in groups.items()]
    families = {family_of(group[0][0]["mode"] or "single"): looks[name]
                for name, group in groups.items()}
    return [look.handle(family) for family, look in families.items()]


def label(name: str, group: Sequence[Training]) -> str:
    final = [accuracies[-1] for training in group
             if (accuracies := [row["accuracy"]
                                for row in training if row["accuracy"] is not None])]
    return f"{name}: {100 * median(final):.1f} %" if final else name


def remark(trainings: Sequence[Training]) -> str:
    longest = max(map(len, trainings))
    parts = f", drawn as {MOST_POINTS} means of consecutive rows" if longest > MOST_POINTS else ""
    seeds = len({training[0].get("seed") for training in trainings})
    medians = f" Medians over {seeds} seeds." if seeds > 1 else ""
    return (f"Up to {plural(longest, 'row')} of train.csv per training{parts}; percentages: final "
            f"accuracy on held-out images.{medians}")
