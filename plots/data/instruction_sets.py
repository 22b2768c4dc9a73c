"""What share of its own FMA peak each build of one source reaches: the same rung for SSE4.2, AVX2
and AVX-512."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from plots.data.ceilings import peaks
from plots.data.names import ISA_NARROW_TO_WIDE, split_isa
from plots.data.numbers import listed, percent
from plots.data.overview import GFLOPS, RATES
from plots.data.ratios import Ladder, Resource, geometric_mean, problem_key
from plots.data.reading import Run

ONE_THREAD = Resource("", 1, 1)


class Builds(NamedTuple):
    """One rung of a primitive: GFLOP/s of each build on one thread, geometric means over the
    problems that all builds were measured on."""
    primitive: str
    family: str
    rates: dict[str, float]  # by instruction set
    problems: int


def peak_of_each(run: Run) -> dict[str, float]:
    """GFLOP/s on one thread, narrowest first; only the widest set of a run of former versions."""
    widest = max(((run.environment or {}).get("isa") or [""]),
                 key=lambda isa: ISA_NARROW_TO_WIDE.index(isa) if isa in ISA_NARROW_TO_WIDE else -1)
    found = {isa: peaks(run, "GFLOP/s", ONE_THREAD,
                        "fma_peak" if isa == widest else f"fma_peak_{isa}").get("peak")
             for isa in ISA_NARROW_TO_WIDE}
    return {isa: peak for isa, peak in found.items() if peak}


def builds(found: Sequence[Ladder], peak: dict[str, float]) -> list[Builds]:
    """The rungs that were measured for several of the sets. Their problems are bound by the peak of
    fp32; rungs that save multiplications are left out."""
    lines = []
    for ladder in found:
        if RATES.get(ladder.primitive) != GFLOPS:
            continue
        families: dict[str, dict[str, dict]] = {}
        for rung in ladder.measured_rungs:
            family, isa = split_isa(rung.name)
            rows = [row for row in ladder.of(rung, None, ONE_THREAD)
                    if row["precision"] == "fp32" and row["gflops_per_s"]
                    and not row.get("arithmetic")]
            if isa in peak and rows:
                families.setdefault(family, {})[isa] = {problem_key(row): row["gflops_per_s"]
                                                        for row in rows}
        for family, by_isa in families.items():
            shared = set.intersection(*map(set, by_isa.values()))
            if len(by_isa) > 1 and shared:
                rates = {isa: geometric_mean(by_isa[isa][key] for key in shared)
                         for isa in peak if isa in by_isa}
                lines.append(Builds(ladder.primitive, family, rates, len(shared)))
    return lines


def sentence(found: Sequence[Builds], peak: dict[str, float]) -> Markup:
    """Of the fastest rung, by the widest set that was measured."""
    best = max(found, key=lambda b: [b.rates.get(isa, 0) for isa in reversed(peak)])
    shares = [f"{percent(100 * rate / peak[isa])} of the peak of {isa}" if i == 0 else
              f"{percent(100 * rate / peak[isa])} of {isa}'s"
              for i, (isa, rate) in enumerate(best.rates.items())]
    return Markup("One source of {}, <code>{}</code>, reaches {}.").format(
        best.primitive, best.family, listed(shares))
