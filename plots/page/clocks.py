"""Cycles, instructions and CPI; else reference cycles of the time-stamp counter per FLOP."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from markupsafe import Markup

from plots.data.numbers import number
from plots.data.ratios import Ladder, geometric_mean, resource_of
from plots.data.reading import Row, Run, grouped
from plots.data.samples import key_of
from plots.page.markup import html_table


def clocks(run: Run, ladders: Sequence[Ladder]) -> tuple[str, Markup | None]:
    """A sentence, and a table if there is one."""
    counted = counter_lines(ladders)
    if counted:
        return ("Cycles and instructions of one call in user mode, geometric means over the "
                "problems.", html_table(
            ["primitive", "rung", "on", "cycles per FLOP", "instructions per FLOP", "CPI",
             "problems"], counted, 3))
    why = str((run.environment or {}).get("counters") or "")
    why = (f"This machine shows no hardware counters ({why})." if why
           else "This run has no hardware counters.")
    lines = tsc_lines(run, ladders)
    if lines:
        return (f"{why} Instead: reference cycles of the time-stamp counter per FLOP. It counts at "
                "a constant rate, so they are time in another unit, not core cycles, and there is "
                "no CPI.", html_table(
                    ["primitive", "rung", "on", "reference cycles per FLOP", "problems"], lines, 3))
    return (f"{why} The columns cycles, instructions and cpi are filled where perf_event_open "
            "works.", None)


def rows_of_rungs(ladders: Sequence[Ladder]) -> Iterator[tuple[list[str], list[Row]]]:
    """Gives the first cells of each line, and the rows that it sums up."""
    for ladder in ladders:
        for rung in ladder.measured_rungs:
            for resource, rows in sorted(grouped(ladder.of(rung), resource_of).items()):
                yield [ladder.primitive, f"`{rung.name}`", resource.label], rows


def counter_lines(ladders: Sequence[Ladder]) -> list[list[str]]:
    lines = []
    for head, rows in rows_of_rungs(ladders):
        rows = [row for row in rows if row["cpi"] and row["flops"] and row["cycles"]]
        if rows:
            cycles = geometric_mean(row["cycles"] / row["flops"] for row in rows)
            instructions = geometric_mean(row["instructions"] / row["flops"]
                                          for row in rows if row["instructions"])
            cpi = geometric_mean(row["cpi"] for row in rows)
            lines.append([*head, number(cycles, ".3g"), number(instructions, ".3g"),
                          number(cpi, ".2f"), str(len(rows))])
    return lines


def tsc_lines(run: Run, ladders: Sequence[Ladder]) -> list[list[str]]:
    samples = grouped((row for row in run.samples or [] if row["tsc_cycles"]), key_of)
    lines = []
    for head, rows in rows_of_rungs(ladders):
        found = [statistics.median(sample["tsc_cycles"] for sample in samples[key_of(row)])
                 / row["flops"] for row in rows if row["flops"] and key_of(row) in samples]
        if found:
            lines.append([*head, number(geometric_mean(found), ".3g"), str(len(found))])
    return lines
