"""All rows of summary.csv as compact JSON, for the table and the chart of the explorer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from plots.data import schema
from plots.data.numbers import plural
from plots.data.ratios import has_time, problem_key, resource_of
from plots.data.reading import Row, Run, grouped
from plots.data.samples import key_of
from plots.page.verdicts import Verdict

# Columns with few values are numbers of an entry of their list.
TEXTS = ("primitive", "direction", "variant", "technique", "suite", "problem", "shape", "precision",
         "cache", "device", "status", "reason", "marked", "roof")
NUMBERS = ("median_s", "ci_low_s", "ci_high_s", "flops", "bytes", "gflops_per_s", "gbytes_per_s",
           "percent_of_roof", "speedup_vs_serial", "speedup_vs_vendor")
COUNTS = ("threads", "ranks", "hosts")


def ranks(rows: Sequence[Row]) -> list[tuple[int, bool] | None]:
    """Place of each row among those of its problem, threads and precision, and whether it is a tie:
    a row is behind another only if their intervals do not overlap."""
    def place_of(i: int) -> tuple:
        return (rows[i]["primitive"], *problem_key(rows[i]), rows[i]["precision"],
                resource_of(rows[i]))

    groups = grouped((i for i, row in enumerate(rows) if has_time(row)), place_of)
    found: list[tuple[int, bool] | None] = [None] * len(rows)
    for members in groups.values():
        spans = {i: (rows[i]["ci_low_s"] or rows[i]["median_s"],
                     rows[i]["ci_high_s"] or rows[i]["median_s"])
                 for i in members}
        place = {i: 1 + sum(high < spans[i][0] for _, high in spans.values()) for i in members}
        shared = Counter(place.values())
        for i in members:
            found[i] = (place[i], shared[place[i]] > 1)
    return found


def rounded(value: float | None) -> float | int | None:
    """Four digits are enough for a table."""
    if value is None:
        return None
    short = float(f"{value:.4g}")
    return int(short) if short == int(short) and abs(short) < 1e15 else short


def usual_command(row: Row) -> str:
    """The form that stepladder writes; the page makes it again from the columns."""
    launcher = f"mpirun -np {row['ranks']} " if (row["ranks"] or 1) > 1 else ""
    return (f"{launcher}build/stepladder bench {row['primitive']} --variant {row['variant']} "
            f"--suite {row['suite']} --problem {row['problem']} --direction {row['direction']} "
            f"--threads {row['threads']}")


def data(rows: Sequence[Row], verdicts: Mapping[tuple, Verdict]) -> dict[str, Any]:
    texts: dict[str, dict[str, int]] = {name: {} for name in TEXTS}
    columns: dict[str, list] = {}
    for name in TEXTS:
        values = [str(row.get(name) or "") for row in rows]
        if any(values):
            columns[name] = [texts[name].setdefault(value, len(texts[name])) for value in values]
    for name in NUMBERS:
        values = [rounded(row.get(name)) for row in rows]
        if any(value is not None for value in values):
            columns[name] = values
    for name in COUNTS:
        columns[name] = [row.get(name) or 1 for row in rows]
    places = ranks(rows)
    columns["rank"] = [place and place[0] for place in places]
    columns["tie"] = [int(place is not None and place[1]) for place in places]
    columns["command"] = [1 if (command := row.get("repeat_command") or "") == usual_command(row)
                          else command or 0
                          for row in rows]
    if verdicts:
        judged = [verdicts.get(key_of(row)) for row in rows]
        columns["verdict"] = [v.verdict if v else "" for v in judged]
        columns["ratio"] = [rounded(v.ratio) if v else None for v in judged]
    return {"texts": {name: list(values) for name, values in texts.items() if values},
            "columns": columns, "count": len(rows)}


def peaks(run: Run) -> list[dict[str, Any]]:
    return [{"threads": c["threads"], "value": rounded(c["value"])} for c in run.ceilings or []
            if c["name"] == "fma_peak"]


def bandwidths(run: Run) -> list[dict[str, Any]]:
    """The best bandwidth of each level."""
    best: dict[tuple, float] = {}
    for c in run.ceilings or []:
        if c["unit"] == "GB/s":
            key = (c["threads"], c["level"] or c["name"])
            best[key] = max(best.get(key, 0.0), c["value"])
    return [{"threads": threads, "level": level, "value": rounded(value)}
            for (threads, level), value in best.items()]


def without_time(rows: Sequence[Row]) -> list[list[str]]:
    """One line per variant and reason; failed rows first."""
    found: Counter = Counter()
    for status in ("failed", "skipped", "unavailable"):
        found.update((row["status"], row["primitive"], row["variant"],
                      row["reason"] or "no reason given")
                     for row in rows if row["status"] == status)
    return [[status, primitive, f"`{variant}`", reason, str(count)]
            for (status, primitive, variant, reason), count in found.items()]


def status_sentence(rows: Sequence[Row]) -> str:
    found = Counter(row["status"] for row in rows)
    return f"{plural(len(rows), 'row')}: " + ", ".join(f"{found[status]} {status}"
                                                       for status in schema.STATUSES)


def failed_lines(rows: Sequence[Row]) -> list[list[str]]:
    return [[f"`{row['variant']}`", row["primitive"], row["direction"], row["problem"],
             row["reason"] or "no reason given"] for row in rows]
