"""What each technique buys whatever the order: the attribution of a run, as a sentence."""

from __future__ import annotations

import re
from typing import NamedTuple

from plots.data.numbers import plural, shown
from plots.data.reading import Row, Run, grouped

CLEARLY = 1.03
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
    problems = grouped((row for row in run.attribution or [] if not row["partner"]),
                       lambda row: (row["primitive"], row["direction"], row["problem"]))
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
    when = ("whatever came before" if row["most"] / row["least"] <= STEADY else
            f"({shown(row['alone'])}, {shown(row['last'])})")
    return f"{name_of(row)} {shown(row['average'])} {when}"


def sentence(found: Attribution) -> str:
    subject = (f"the step of {found.problem}" if found.primitive == "step" else found.primitive)
    return (f"On {subject} ({found.shape}, {plural(found.threads, 'thread')}), all techniques "
            f"together gave {shown(found.total['average'])} over the plain loops{without(found)}. "
            "The mean of each over all orders (alone, last): "
            f"{'; '.join(map(clause, found.techniques))}.")


def without(found: Attribution) -> str:
    """The fastest combination, if it has not all techniques and is clearly faster."""
    most = found.total["most"]
    if not most or most < CLEARLY * found.total["average"]:
        return ""
    with_ = set(re.split(", | and ", found.total["most_after"]))
    names = [name_of(row) for row in found.techniques if row["technique"] not in with_]
    return f", {shown(most)} without {' and '.join(names)}"
