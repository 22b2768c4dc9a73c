"""The training modes of a run as tables, the fastest to the target first."""

from __future__ import annotations

import math
from collections.abc import Sequence

from plots.data.modes import (
    Compared,
    Interval,
    by_network,
    fastest_first,
    labels_of,
    several_modes,
    speedup,
)
from plots.data.numbers import MISSING, binary_size, number, percent, times
from plots.tables import markdown

LABELS = ("mode", "samples/s", "x single", "bytes/step", "exposed", "waiting", "staleness",
          "to target, s", "interval", "reached", "accuracy")


def markdown_tables(found: Sequence[Compared]) -> str | None:
    if not several_modes(found):
        return None
    return "\n\n".join(f"{title_of(here)}\n\n" + markdown.table(
        LABELS, [[f"`{mode}`", *cells] for mode, *cells in rows_of(here)], 1)
                       for here in by_network(found).values())


def title_of(found: Sequence[Compared]) -> str:
    setting = found[0].setting
    ranks = sorted({c.setting.ranks for c in found if c.setting.ranks > 1})
    on = f", {', '.join(map(str, ranks))} ranks" if ranks else ""
    seeds = max(len(c.trainings) for c in found)
    over = f"medians over {seeds} seeds" if seeds > 1 else "1 seed"
    return (f"{setting.network}{on}, {over}; target: {100 * found[0].target:g} % held-out "
            "accuracy")


def rows_of(found: Sequence[Compared]) -> list[list[str]]:
    """The cells of LABELS."""
    labels = labels_of(found)
    return [[labels[c.setting], *cells_of(c, speedup(c, found))] for c in fastest_first(found)]


def cells_of(c: Compared, over_single: float | None) -> list[str]:
    sent, accuracy, time = c.mean("bytes_per_step"), c.final_accuracy, c.to_target("seconds")
    return [number(c.samples_per_s, ",.0f"), times(over_single),
            binary_size(sent) if sent else MISSING,
            share(c.mean("exposed_share")), share(c.mean("waiting_share")),
            number(c.mean("staleness_mean"), ".2f"), seconds(time.median),
            interval_of(time) if len(c.trainings) > 1 else MISSING,
            f"{c.reached}/{len(c.trainings)}",
            f"{100 * accuracy.median:.1f} %" if accuracy else MISSING]


def interval_of(time: Interval) -> str:
    """Its ends are infinite where few seeds reached the target."""
    if math.isfinite(time.high):
        return f"{seconds(time.low)} to {seconds(time.high)}"
    return f"over {seconds(time.low)}" if math.isfinite(time.low) else MISSING


def seconds(value: float) -> str:
    """Infinite where half of the seeds or more did not reach the target."""
    if not math.isfinite(value):
        return MISSING
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def share(value: float | None) -> str:
    return percent(None if value is None else 100 * max(0.0, value))
