"""Loss and accuracy against time and samples, one group of charts per family of modes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup

from plots.charts import style
from plots.data.modes import family_of
from plots.data.reading import Row, Run, load_run
from plots.data.trainings import Training, groups_of, median_curve, points_of, thinned
from plots.page import svg
from plots.page.svg import Axis, Series

MOST_POINTS = 40
MOST_LINES = 8  # of a group of charts
# Folder of a run with trainings, and what they compare.
FOLDERS = (("", "Trainings of this run"), ("modes", "Training modes"),
           ("modes/optimizers", "Optimizers"), ("modes/hosts", "Training modes between hosts"))
WAYS = (("loss", "seconds", "training loss", "seconds"),
        ("loss", "samples", "training loss", "samples"),
        ("accuracy", "seconds", "held-out accuracy", "seconds"),
        ("accuracy", "samples", "held-out accuracy", "samples"))


def convergence(run: Run) -> list[dict[str, Any]]:
    """Per folder with trainings: its title and its groups of charts."""
    parts = []
    for name, title in FOLDERS:
        rows = run.train if not name else trainings_of(run, name)
        groups = groups_of([row for row in rows or [] if not row.get("platform")])
        if groups:
            seeds = max(len(trainings) for trainings in groups.values())
            parts.append({"title": title, "seeds": seeds, "charts": [
                {"title": family, **charts_of(members)} for family, members in families(groups)]})
    return parts


def trainings_of(run: Run, name: str) -> list[Row] | None:
    folder = run.folder / name
    return load_run(folder, ("train",)).train if (folder / "train.csv").exists() else None


def families(groups: dict[str, list[Training]]) -> Iterable[tuple[str, dict[str, list[Training]]]]:
    """Few trainings together; many by network and family of modes, each with the single replica."""
    if len(groups) <= MOST_LINES:
        yield ", ".join(dict.fromkeys(t[0][0].get("network") or ""
                                      for t in groups.values())), groups
        return
    made: dict[tuple[str, str], dict[str, list[Training]]] = {}
    single: dict[str, dict[str, list[Training]]] = {}
    for name, trainings in groups.items():
        row = trainings[0][0]
        network, family = row.get("network") or "", family_of(row["mode"] or "single")
        if family == "one replica":
            single.setdefault(network, {})[name] = trainings
        else:
            made.setdefault((network, family), {})[name] = trainings
    for (network, family), members in made.items():
        named = list(members.items())
        for start in range(0, len(named), MOST_LINES):
            yield f"{network}: {family}", {**single.get(network, {}),
                                           **dict(named[start:start + MOST_LINES])}
    with_modes = {network for network, _ in made}
    yield from (item for item in single.items() if item[0] not in with_modes)


def charts_of(groups: dict[str, list[Training]]) -> dict[str, Any]:
    modes = style.mode_styles(trainings[0][0]["mode"] or "single" for trainings in groups.values())
    same_mode = len({trainings[0][0]["mode"] for trainings in groups.values()}) < len(groups)
    of_series = style.series_styles(groups)
    networks = {trainings[0][0].get("network") or "" for trainings in groups.values()}
    prefix = f"{networks.pop()}, " if len(networks) == 1 else ""  # the heading says it
    pictures, keys = [], []
    for y, x, y_label, x_label in WAYS:
        series = []
        for i, (name, trainings) in enumerate(groups.items()):
            mode = trainings[0][0]["mode"] or "single"
            colour = svg.colour_attributes(of_series[name].colour if same_mode
                                           else modes[mode].colour)
            made = curve(trainings, x, y)
            if made:
                points, band = made
                dash = ("", "6 3", "2 2", "8 2 2 2")[i % 4]
                series.append(Series(name.removeprefix(prefix), colour, points, band, dash=dash))
        if not series:
            continue
        values = [p[1] for one in series for p in one.points]
        logarithmic = y == "loss" and min(values) > 0 and max(values) / min(values) > 5
        across = Axis.around(x_label, [p[0] for one in series for p in one.points], False, low=0.0)
        up = Axis.around(y_label, values, logarithmic)
        pictures.append({"label": f"{y_label} against {x_label}",
                         "svg": svg.chart(f"{y_label} against {x_label}", clipped(series, up),
                                          across, up)})
        keys = keys or series
    return {"pictures": pictures, "legend": svg.legend(keys) if keys else Markup("")}


def clipped(series: Sequence[Series], axis: Axis) -> list[Series]:
    return [one._replace(
        band=[(x, min(max(low, axis.low), axis.high), min(max(high, axis.low), axis.high))
              for x, low, high in one.band]) for one in series]


def curve(trainings: list[Training], x: str, y: str) -> tuple[list, list] | None:
    """The median over the seeds, with its interval if there are several."""
    if any(x not in row for training in trainings for row in training[:1]):
        return None
    found = median_curve([thinned(points_of(training, x, y), MOST_POINTS)
                          for training in trainings]).tolist()
    if not found:
        return None
    return ([(across, median) for across, median, _, _ in found],
            [(across, low, high) for across, _, low, high in found] if len(trainings) > 1 else [])
