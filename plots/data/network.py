"""The fastest all-reduce at each length, beside the library."""

from __future__ import annotations

from collections.abc import Sequence

from plots.data.names import is_rung
from plots.data.numbers import binary_size, microseconds, percent, times
from plots.data.ratios import latest
from plots.data.reading import Row, Run, grouped

# Times are in us.
LABELS = ("hosts", "ranks", "length", "fastest rung", "us", "predicted", "of bound", "library",
          "library / ours")


def all_reduce_rows(run: Run) -> list[Row]:
    return [row for row in latest(run.summary or [])
            if row["primitive"] == "all_reduce" and row["status"] == "ok"
            and row["direction"] == "sum"]


def fastest(rows: Sequence[Row]) -> list[list[str]]:
    """One line per number of hosts, ranks and length."""
    groups = grouped(rows, lambda row: (row["hosts"], row["ranks"], vector_bytes(row)))
    return [line for key in sorted(groups) for line in line_of(groups[key])]


def vector_bytes(row: Row) -> float:
    """The shape is the number of elements; the column bytes has six digits only."""
    return 4 * float(row["shape"])


def line_of(rows: Sequence[Row]) -> list[list[str]]:
    """Compressed messages are not compared with the bound, and by_model runs one of the other
    rungs. Empty if only libraries were measured."""
    own = [row for row in rows if is_rung(row) and not row["message_share"]]
    if not own:
        return []
    best = min(own, key=lambda row: row["median_s"])
    library = min((row["median_s"] for row in rows if row["technique"] == "vendor"), default=None)
    return [[str(best["hosts"]), str(best["ranks"]), binary_size(vector_bytes(best)),
             best["variant"], microseconds(best["median_s"]), microseconds(best["predicted_s"]),
             percent(best["percent_of_roof"]), microseconds(library),
             times(library / best["median_s"] if library else None)]]
