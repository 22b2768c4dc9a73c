"""The training modes of a run as a table, the fastest to the target first: the last screen of
`make compare-modes`, a section of tables.md, and a block of the READMEs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from plots import markdown, schema
from plots.modes import (CSV_FILE, Compared, Interval, fastest_first, labels_of, most_ranks, several_modes,
                         speedup)
from plots.next_commands import shown_path
from plots.numbers import MISSING, binary_size, number, percent, times
from plots.provenance import provenance
from plots.reading import Run
from plots.text import WIDTH, clipped, columns

LABELS = ("mode", "samples/s", "x single", "bytes/step", "exposed", "waiting", "staleness", "to target, s",
          "interval", "reached", "accuracy")
ON_SCREEN = ("mode", "samples/s", "x single", "bytes", "exposed", "waiting", "stale", "to target", "accuracy")
LONGEST_MODE = 30  # characters, on the screen
FIRST_CHARTS = ("modes-time-*", "modes-convergence-*", "modes-*")


def render(run: Run, found: Sequence[Compared]) -> str:
    """Every mode on its most ranks."""
    source = provenance(run)
    network = (run.environment or {}).get("network")
    lines = [f"{source.machine}; commit {source.commit}; data: {source.data}"]
    if any(c.setting.hosts > 1 for c in found):
        lines.append(f"Network: {network or 'not recorded'}")
    blocks = ["\n".join(clipped(line, WIDTH) for line in lines)]
    for here in by_network(most_ranks(found)):
        rows = [screen_row(row) for row in rows_of(here)]
        blocks.append(f"{title_of(here)}\n{columns(ON_SCREEN, rows, 1)}")
    return "\n\n".join([*blocks, files(run.folder)])


def screen_row(row: Sequence[str]) -> list[str]:
    """The median alone; how many seeds reached the target only if not all did."""
    mode, *cells, time, _, reached, accuracy = row
    if time != MISSING:
        time += " s"
    seeds, _, of = reached.partition("/")
    return [clipped(mode, LONGEST_MODE), *cells, time if seeds == of else f"{time} {reached}", accuracy]


def markdown_tables(found: Sequence[Compared]) -> str | None:
    if not several_modes(found):
        return None
    return "\n\n".join(f"{title_of(here)}\n\n" + markdown.table(
        LABELS, [[f"`{mode}`", *cells] for mode, *cells in rows_of(here)], 1) for here in by_network(found))


def by_network(found: Sequence[Compared]) -> list[list[Compared]]:
    networks = dict.fromkeys(c.setting.network for c in found)
    return [[c for c in found if c.setting.network == network] for network in networks]


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
    return [number(c.samples_per_s, ",.0f"), times(over_single), binary_size(sent) if sent else MISSING,
            share(c.mean("exposed_share")), share(c.mean("waiting_share")), number(c.mean("staleness_mean"), ".2f"),
            seconds(time.median),
            interval_of(time) if len(c.trainings) > 1 else MISSING,
            f"{c.reached}/{len(c.trainings)}", f"{100 * accuracy.median:.1f} %" if accuracy else MISSING]


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


def files(folder: Path) -> str:
    shown = shown_path(folder)
    lines = [f"Rows: {shown}/{CSV_FILE}"]
    charts = folder / schema.CHARTS_FOLDER
    drawn = [path.name for pattern in FIRST_CHARTS for path in sorted(charts.glob(f"{pattern}.svg"))]
    if drawn:
        lines.append(f"Charts: {shown}/{schema.CHARTS_FOLDER}: {', '.join(dict.fromkeys(drawn))}")
    return "\n".join(lines)
