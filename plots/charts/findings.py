"""The titles of charts: one statement each, from the data. An empty text where the 95 % intervals
do not allow one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plots.data.chain import bought, chain_of, inside
from plots.data.names import Rung
from plots.data.numbers import short
from plots.data.ratios import (
    Ladder,
    Mean,
    Ratio,
    geometric_mean,
    is_set_apart,
    mean_ratio,
    problem_key,
    resource_of,
)
from plots.data.reading import Row

LEAST = 1.02  # smaller factors are not worth a title


def how_many_times(factor: float) -> str:
    return f"{short(factor)} times"


def gain_of(ladder: Ladder, rung: Rung, direction: str | None = None) -> Mean | None:
    """Over the rung that it builds on, on the most threads that the rung ran on."""
    rows = ladder.of(rung, direction)
    if not rows:
        return None
    return mean_ratio(ladder.gains(rung, direction, max(resource_of(row) for row in rows)))


def whole_gain(ladder: Ladder) -> str:
    """From the first rung to the best one, and the idea that bought most of it."""
    chain = chain_of(ladder)
    if chain is None or len(chain.bars) < 2 or chain.bars[-1].total.low <= LEAST:
        return ""
    last = chain.bars[-1]
    text = (f"{last.rung.name} is {how_many_times(last.total.value)} as fast as "
            f"{chain.bars[0].rung.name}")
    most, *others = bought(chain)
    if others and most.gain.low > max(other.gain.high for other in others):
        text += f"; {inside(most.name)} bought the most, {how_many_times(most.gain.value)}"
    return text


def against_library(ladder: Ladder, rows: Sequence[Row]) -> str:
    """The rung that is fastest in the geometric mean, against the library that is; without those
    that are set apart."""
    rows = [row for row in rows if not is_set_apart(row)]
    ours = fastest([row for row in rows if row["technique"] != "vendor"])
    library = fastest([row for row in rows if row["technique"] == "vendor"])
    if not ours or not library:
        return ""
    theirs = {place_of(row): row for row in library}
    mean = mean_ratio([ladder.time_ratio(theirs[place_of(row)], row) for row in ours
                       if place_of(row) in theirs])
    return compared(ours[0]["variant"], library[0]["variant"], mean)


def compared(ours: str, theirs: str, mean: Ratio | Mean | None) -> str:
    if mean is not None and mean.low > LEAST:
        return f"{ours} is {how_many_times(mean.value)} as fast as {theirs}"
    if mean is not None and mean.high < 1 / LEAST:
        return f"{theirs} is {how_many_times(1 / mean.value)} as fast as {ours}"
    return ""


def place_of(row: Row) -> tuple:
    return (*problem_key(row), resource_of(row), row.get("hosts"))


def fastest(rows: Sequence[Row]) -> list[Row]:
    """The rows of the variant with the least time in the geometric mean, of those that have the
    most problems."""
    by_variant: dict[str, dict[tuple, Row]] = {}
    for row in rows:
        by_variant.setdefault(row["variant"], {})[place_of(row)] = row
    if not by_variant:
        return []
    most = max(map(len, by_variant.values()))
    complete = [found for found in by_variant.values() if len(found) == most]
    common = set.intersection(*map(set, complete))
    if not common:
        return []
    best = min(complete, key=lambda found: geometric_mean(found[place]["median_s"]
                                                          for place in common))
    return list(best.values())


def highest(means: Sequence[tuple[str, Mean]], sentence: Callable[[str, float], str]) -> str:
    """The sentence about the first of the means if its interval lies above those of all others."""
    ordered = sorted(means, key=lambda item: -item[1].value)
    if not ordered or ordered[0][1].low <= LEAST:
        return ""
    name, mean = ordered[0]
    apart = all(mean.low > other.high for _, other in ordered[1:])
    return sentence(name, mean.value) if apart else ""
