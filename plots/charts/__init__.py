"""The charts of a run. Each module draws one kind and says what it could not draw.

A module's draw(run) gives (name, Page or reason) pairs: a Page is a figure to be written under
that name, a string is the reason why there is none.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import matplotlib

from plots import page, schema, style
from plots.charts import (bandwidth, loss, noise, predicted, roof, scaling, size, speedup,
                          step_time)
from plots.reading import Run

KINDS = (speedup, size, roof, step_time, scaling, bandwidth, loss, predicted, noise)


@dataclass
class Outcome:
    written: list[str] = field(default_factory=list)
    not_drawn: list[tuple[str, str]] = field(default_factory=list)


def draw_all(run: Run) -> dict[str, page.Page | str]:
    """Every chart by name; a string says why that chart could not be drawn."""
    with matplotlib.rc_context(style.RC):
        return {name: drawn for kind in KINDS for name, drawn in kind.draw(run)}


def write_all(run: Run) -> Outcome:
    """Writes charts/<name>.svg, .pdf and .png into the run folder."""
    outcome = Outcome()
    for name, drawn in draw_all(run).items():
        if isinstance(drawn, str):
            outcome.not_drawn.append((name, drawn))
        else:
            page.save(drawn, run.folder / schema.CHARTS_FOLDER, name)
            outcome.written.append(name)
    return outcome
