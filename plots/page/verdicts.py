"""Verdicts over an earlier run, from `stepladder compare BASE RUN --json`."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from plots.data.ratios import has_time, latest
from plots.data.reading import Run
from plots.data.samples import key_of

SCHEMA_VERSION = 2  # of the JSON of compare
NOT_JUDGED = "not judged"
TIMEOUT_S = 120


class Verdict(NamedTuple):
    """`ratio`: time in this run / time in the base."""
    verdict: str
    ratio: float | None


@dataclass
class Comparison:
    base: str
    rows: Mapping[tuple, Verdict] = field(default_factory=dict)
    rungs: Sequence[dict[str, Any]] = ()
    totals: Mapping[str, int] = field(default_factory=dict)
    why_not: str = ""  # no verdicts, because


def compare(run: Run, base: Run, program: Path) -> Comparison:
    """The verdicts of the program; without it the ratios of the medians, not judged."""
    name = base.folder.resolve().name
    try:
        command = [str(program), "compare", str(base.folder), str(run.folder), "--json"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S,
                                check=False)
        compared = result.returncode in (0, 1) and result.stdout
        answer = json.loads(result.stdout) if compared else None
        why_not = "" if answer else last_line(result.stderr) or f"{program.name} compare failed"
    except (FileNotFoundError, PermissionError):
        answer = None
        why_not = f"there is no program {os.path.relpath(program)}; make build makes it"
    except subprocess.TimeoutExpired:
        answer, why_not = None, f"{program.name} compare took more than {TIMEOUT_S} s"
    except json.JSONDecodeError:
        answer, why_not = None, f"{program.name} compare wrote no JSON"
    version = answer and answer.get("schema_version")
    if answer is not None and version != SCHEMA_VERSION:
        answer, why_not = None, f"{program.name} compare wrote schema_version {version!r}"
    if answer is None:
        return Comparison(name, ratios_of_medians(run, base), why_not=why_not)
    rows = {key_of(row): Verdict(row["verdict"], row["ratio"]) for row in answer["rows"]}
    return Comparison(name, rows, answer["rungs"], answer["totals"])


def last_line(text: str) -> str:
    """The message, without the program's name and the long list of what it expects."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    text = lines[-1].removeprefix("stepladder: ").removeprefix("error: ") if lines else ""
    return text.partition("; expected")[0]


def ratios_of_medians(run: Run, base: Run) -> dict[tuple, Verdict]:
    before = {key_of(row): row["median_s"] for row in latest(base.summary or []) if has_time(row)}
    return {key_of(row): Verdict(NOT_JUDGED, row["median_s"] / before[key_of(row)])
            for row in latest(run.summary or []) if has_time(row) and key_of(row) in before}


def sentence(found: Comparison) -> str:
    if found.why_not:
        return (f"Against {found.base}: {len(found.rows)} rows in common, ratios of the medians "
                f"only and no verdicts, because {found.why_not}.")
    totals = found.totals
    return (f"Against {found.base}, stepladder compare finds {totals['faster']} rows faster, "
            f"{totals['slower']} slower, {totals['same']} the same, and cannot tell "
            f"{totals['cannot_tell']}; {totals['in_one_run_only']} are in one run only.")
