"""The charts of a run. Each module draws one kind.

Its draw(run) gives pairs (name, Page) or (name, reason): the figure to be written under that name,
or the reason why there is none.
"""

from __future__ import annotations

import multiprocessing
import os
import re
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import matplotlib

from plots.charts import (
    all_reduce,
    attribution,
    bandwidth,
    figure,
    inference,
    layouts,
    loss,
    modes,
    noise,
    predicted,
    roof,
    roofline,
    scaling,
    simulated,
    simulated_trainings,
    size,
    speedup,
    step_time,
    style,
)
from plots.data import schema
from plots.data.reading import Run

KINDS = (speedup, attribution, size, layouts, roof, roofline, step_time, inference, scaling,
         bandwidth, all_reduce, loss, modes, predicted, noise, simulated, simulated_trainings)


@dataclass
class Outcome:
    written: list[str] = field(default_factory=list)
    not_drawn: list[tuple[str, str]] = field(default_factory=list)


def write_all(run: Run) -> Outcome:
    """Writes charts/<name>.svg, .pdf and .png into the run folder; one process per kind."""
    workers = min(len(KINDS), len(os.sched_getaffinity(0)))
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, context) as pool:
        parts = list(pool.map(partial(write_kind, run), range(len(KINDS))))
    return Outcome([name for part in parts for name in part.written],
                   [entry for part in parts for entry in part.not_drawn])


def file_name(name: str) -> str:
    """Names of networks may have any character: those that a file's may lack become ~ and their
    bytes, so that different names stay different."""
    return re.sub(r"[^\w.-]", lambda found: "".join(f"~{byte:02x}" for byte in found[0].encode()),
                  name, flags=re.ASCII)


def write_kind(run: Run, number: int) -> Outcome:
    outcome = Outcome()
    with matplotlib.rc_context(style.RC):
        for title, drawn in KINDS[number].draw(run):
            name = file_name(title)
            if isinstance(drawn, str):
                outcome.not_drawn.append((name, drawn))
            else:
                figure.save(drawn, run.folder / schema.CHARTS_FOLDER, name)
                outcome.written.append(name)
    return outcome
