"""What each technique buys whatever the order: the attribution of a run, as a sentence."""

from __future__ import annotations

from typing import NamedTuple

from plots.data.numbers import plural, shown
from plots.data.reading import Row, Run

STEADY = 1.5      # most gain / least gain up to which a technique buys "whatever came before"
TECHNIQUE_NAMES = {"blocking": "cache blocking", "tile": "a register tile",
                   "loops": "the order of the loops"}
ORDER = ("step", "matmul", "convolution", "max_pool", "sgd_update")


class Attribution(NamedTuple):
    """Of one problem; `techniques` with the largest average first."""
    primitive: str
    direction: str
    problem: str
    shape: str
    threads: int
    techniques: list[Row]
    total: Row


def attributions(run: Run) -> list[Attribution]:
    problems: dict[tuple[str, str, str], list[Row]] = {}
    for row in run.attribution or []:
        if not row["partner"]:
            key = (row["primitive"], row["direction"], row["problem"])
            problems.setdefault(key, []).append(row)
    found = []
    for (primitive, direction, problem), rows in problems.items():
        total = next((row for row in rows if row["technique"] == "all"), None)
        if total is None:
            continue
        techniques = sorted((row for row in rows if row is not total),
                            key=lambda row: -row["average"])
        found.append(Attribution(primitive, direction, problem, total["shape"], total["threads"],
                                 techniques, total))
    return sorted(found, key=lambda a: ORDER.index(a.primitive) if a.primitive in ORDER
                  else len(ORDER))


def name_of(row: Row) -> str:
    return TECHNIQUE_NAMES.get(row["technique"], row["technique"])


def clause(row: Row) -> str:
    """What a technique bought, in a few words."""
    name = name_of(row)
    if row["most"] / row["least"] <= STEADY:
        return f"{name} {shown(row['least'])} to {shown(row['most'])} whatever came before"
    return f"{name} {shown(row['alone'])} alone and {shown(row['last'])} at the end"


def sentence(found: Attribution) -> str:
    clauses = [clause(row) for row in found.techniques]
    text = "; ".join(clauses)
    subject = (f"the step of {found.problem}" if found.primitive == "step" else found.primitive)
    return (f"On {subject} ({found.shape}, {plural(found.threads, 'thread')}), {text}; all "
            f"together {shown(found.total['average'])}.")
