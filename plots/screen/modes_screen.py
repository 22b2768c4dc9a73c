"""The training modes, the fastest to the target first: the last screen of `make compare-modes`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plots.data import schema
from plots.data.modes import CSV_FILE, Compared, by_network, most_ranks
from plots.data.numbers import MISSING
from plots.data.provenance import provenance
from plots.data.reading import Run
from plots.screen.next_commands import shown_path
from plots.screen.text import WIDTH, clipped, columns
from plots.tables.mode_tables import rows_of, title_of

ON_SCREEN = ("mode", "samples/s", "x single", "bytes", "exposed", "waiting", "stale", "to target",
             "accuracy")
LONGEST_MODE = 30  # characters, on the screen
FIRST_CHARTS = ("modes-time-*", "modes-convergence-*", "modes-*")


def render(run: Run, found: Sequence[Compared]) -> str:
    """Every mode on its most ranks."""
    network = (run.environment or {}).get("network")
    lines = [provenance(run).line]
    if any(c.setting.hosts > 1 for c in found):
        lines.append(f"Network: {network or 'not recorded'}")
    blocks = ["\n".join(clipped(line, WIDTH) for line in lines)]
    for here in by_network(most_ranks(found)).values():
        rows = [screen_row(row) for row in rows_of(here)]
        blocks.append(f"{title_of(here)}\n{columns(ON_SCREEN, rows, 1)}")
    return "\n\n".join([*blocks, files(run.folder)])


def screen_row(row: Sequence[str]) -> list[str]:
    """The median alone; how many seeds reached the target only if not all did."""
    mode, *cells, time, _, reached, accuracy = row
    if time != MISSING:
        time += " s"
    seeds, _, of = reached.partition("/")
    return [clipped(mode, LONGEST_MODE), *cells, time if seeds == of else f"{time} {reached}",
            accuracy]


def files(folder: Path) -> str:
    shown = shown_path(folder)
    lines = [f"Rows: {shown}/{CSV_FILE}"]
    charts = folder / schema.CHARTS_FOLDER
    drawn = [path.name for pattern in FIRST_CHARTS
             for path in sorted(charts.glob(f"{pattern}.svg"))]
    if drawn:
        lines.append(f"Charts: {shown}/{schema.CHARTS_FOLDER}: {', '.join(dict.fromkeys(drawn))}")
    return "\n".join(lines)
