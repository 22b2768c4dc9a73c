"""How far the ratio of two rungs of a problem repeats between runs of one machine: spread.json.

Every pair of runs, every problem that both measured on as many threads, every pair of its rungs
whose four times are at least SHORTEST: the change of their ratio, |a1 / b1 : a2 / b2| as a factor
above 1. Ratios of rows that say themselves that they are uncertain (`marked`, or `noisy` or
`unsteady` in `reason`) are left out of a second distribution.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from plots.data import schema
from plots.data.errors import InputError
from plots.data.files import replace_file
from plots.data.numbers import number, plural
from plots.data.ratios import has_time, latest, problem_key, resource_of
from plots.data.reading import Row, Run, read_json

SHORTEST = 50e-6  # seconds
REMARKS = ("noisy:", "unsteady:")


def is_uncertain(row: Row) -> bool:
    return bool(row.get("marked")) or any(remark in row["reason"] for remark in REMARKS)


def times_by_problem(run: Run) -> dict[tuple, dict[str, tuple[float, bool]]]:
    """By problem and resource, of each rung the seconds and whether the row is uncertain."""
    found: dict[tuple, dict[str, tuple[float, bool]]] = {}
    for row in latest(run.summary or []):
        if has_time(row) and row["median_s"] >= SHORTEST:
            key = (row["primitive"], row["suite"], problem_key(row), resource_of(row))
            found.setdefault(key, {})[row["variant"]] = (row["median_s"], is_uncertain(row))
    return found


def changes(one: Run, other: Run) -> Iterable[tuple[float, bool]]:
    """Of every two rungs of a problem: the change of their ratio, and whether a row says that it is
    uncertain."""
    before, after = times_by_problem(one), times_by_problem(other)
    for key in before.keys() & after.keys():
        common = sorted(before[key].keys() & after[key].keys())
        for a, b in itertools.combinations(common, 2):
            rows = before[key][a], before[key][b], after[key][a], after[key][b]
            (a1, _), (b1, _), (a2, _), (b2, _) = rows
            yield math.exp(abs(math.log(a1 / b1 * b2 / a2))) - 1, any(uncertain
                                                                      for _, uncertain in rows)


def percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


def distribution(values: Iterable[float]) -> dict[str, Any]:
    ordered = sorted(values)
    if not ordered:
        return {"ratios": 0}
    return {"ratios": len(ordered), "median": round(percentile(ordered, 0.5), 5),
            "95th percentile": round(percentile(ordered, 0.95), 5)}


def measure(runs: Sequence[Run]) -> dict[str, Any]:
    for run in runs:
        if not run.summary:
            raise InputError(f"{run.folder}: has no rows in {schema.SUMMARY_FILE}; expected a run "
                             "of make bench")
    models = {(run.environment or {}).get("cpu_model") for run in runs}
    if len(models) > 1:
        raise InputError("the runs are of different machines: "
                         f"{', '.join(sorted(map(str, models)))}")
    found = [change for one, other in itertools.combinations(runs, 2)
             for change in changes(one, other)]
    if not found:
        raise InputError("the runs have no two rungs of a problem in common that take "
                         f"{SHORTEST * 1e6:.0f} us or more")
    return {"schema_version": schema.SCHEMA_VERSION,
            "runs": [{name: (run.environment or {}).get(name)
                      for name in ("started_at", "commit", "noise")}
                     for run in runs],
            "shortest_s": SHORTEST, "all": distribution(change for change, _ in found),
            "certain": distribution(change for change, uncertain in found if not uncertain)}


def write(runs: Sequence[Run]) -> tuple[Path, dict[str, Any]]:
    """Into the folder of the first run, the one that is published."""
    content = measure(runs)
    path = runs[0].folder / schema.SPREAD_FILE
    replace_file(path, json.dumps(content, indent=1) + "\n")
    return path, content


def of_run(run: Run) -> str:
    """A sentence; empty if the run was not repeated."""
    content = read_json(run.folder / schema.SPREAD_FILE)
    return sentence(content) if content else ""


def sentence(content: dict[str, Any]) -> str:
    every, certain = content["all"], content["certain"]

    def figures(found: dict[str, Any]) -> str:
        median, high = (number(100 * found[name], ".2g") for name in ("median", "95th percentile"))
        return f"{median} % (median) and {high} % (95th percentile)"

    text = (f"Measured {plural(len(content['runs']), 'time')}: the ratio of two rungs of a problem "
            f"that take {content['shortest_s'] * 1e6:.0f} µs or more differs between two of these "
            f"runs by {figures(every)}")
    if certain["ratios"]:
        text += (f", and by {figures(certain)} where no row says that it is disturbed, noisy or "
                 "unsteady")
    return f"{text}; {plural(every['ratios'], 'ratio')}."
