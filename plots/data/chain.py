"""The answer of a ladder: the chain from the first rung to the best rung of one primitive, each on
the most threads on which it ran, what each idea bought in it, and both as a sentence. Gains are
geometric means over the problems of all rungs of the chain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from markupsafe import Markup

from plots.data.names import Rung, is_by_compiler, is_cpu
from plots.data.numbers import milliseconds, percent, shown, times
from plots.data.overview import StepComparison, best_rung, step_comparisons
from plots.data.ratios import (
    Ladder,
    Mean,
    Resource,
    geometric_mean,
    mean_ratio,
    problem_key,
    resources_of,
)
from plots.data.reading import Run
from plots.data.steps import configurations

# Of several primitives, the first of these whose ladder has at least two measured rungs.
ORDER = ("matmul", "convolution", "max_pool", "average_pool", "sgd_update", "all_reduce", "reorder",
         "low_precision")
TECHNIQUE_NAMES = {"serial": "Better serial code", "simd": "SIMD", "openmp": "OpenMP threads",
                   "pthread": "Pthreads", "mpi": "MPI", "cuda": "CUDA",
                   "opencl": "OpenCL", "vendor": "The vendor's library"}


class Bar(NamedTuple):
    rung: Rung
    resource: Resource
    total: Mean               # times as fast as the first rung
    gain: Mean | None         # times as fast as the bar below
    below: str


class Chain(NamedTuple):
    ladder: Ladder
    resource: Resource        # of the best rung
    bars: list[Bar]
    library: Bar | None
    compiler: Bar | None      # what the compiler makes of the best plain loop
    ceiling: float | None     # of the roof over the first rung
    of_ceiling: float | None  # percent, of the best rung


def main_resource(ladder: Ladder) -> Resource | None:
    """The most threads on the fewest ranks of the CPU; the GPU if nothing ran on the CPU."""
    own = [row for row in ladder.measured if row["technique"] != "vendor"]
    on = resources_of(own)
    cpu = [r for r in on if is_cpu(r.device)]
    fewest = [r for r in cpu if r.ranks == cpu[0].ranks]
    return fewest[-1] if fewest else on[-1] if on else None


def most_threads(ladder: Ladder, rung: Rung, at_most: Resource) -> Resource | None:
    on = [r for r in resources_of(ladder.of(rung))
          if (r.device, r.ranks) == (at_most.device, at_most.ranks)
          and r.threads <= at_most.threads]
    return on[-1] if on else None


def chain_of(ladder: Ladder) -> Chain | None:
    resource = main_resource(ladder)
    best = best_rung(ladder, None, resource) if resource else None
    if best is None:
        return None
    path: list[Rung] = []
    below: Rung | None = best.rung
    while below is not None and below not in path:
        path.insert(0, below)
        below = ladder.base_of(below)
    ladder = on_common_problems(ladder, path, resource)
    bars = [bar for i, rung in enumerate(path)
            if (bar := bar_of(ladder, rung, resource, path[i - 1] if i else None))]
    if not bars:
        return None
    ceiling = ceiling_over_first(ladder, best.rung, resource)
    libraries = [bar for rung in ladder.measured_rungs if rung.technique == "vendor"
                 and not ladder.is_prepacked(rung)
                 and (bar := bar_of(ladder, rung, resource, None)) and bar.resource == resource]
    compiled = [bar for rung in ladder.measured_rungs if is_by_compiler(rung)
                and (bar := bar_of(ladder, rung, resource, None))]
    return Chain(ladder, resource, bars, fastest_of_most_problems(libraries),
                 fastest_of_most_problems(compiled), ceiling,
                 ladder.column_mean("percent_of_roof", best.rung, None, resource))


def fastest_of_most_problems(bars: Sequence[Bar]) -> Bar | None:
    most = max((bar.total.count for bar in bars), default=0)
    return max((bar for bar in bars if bar.total.count == most),
               key=lambda bar: bar.total.value, default=None)


def on_common_problems(ladder: Ladder, path: Sequence[Rung], resource: Resource) -> Ladder:
    """The ladder on the problems of all rungs of the path, so that the gains multiply to the
    whole."""
    of_rungs = [{problem_key(row)
                 for row in ladder.of(rung, None, most_threads(ladder, rung, resource))}
                for rung in path if most_threads(ladder, rung, resource)]
    common = set.intersection(*of_rungs)
    return replace(ladder, measured=[row for row in ladder.measured if problem_key(row) in common])


def bar_of(ladder: Ladder, rung: Rung, resource: Resource, below: Rung | None) -> Bar | None:
    on = most_threads(ladder, rung, resource)
    total = mean_ratio(ladder.speedups(rung, None, on)) if on else None
    if on is None or total is None:
        return None
    gain = mean_ratio(ladder.gains(rung, None, on)) if below else None
    return Bar(rung, on, total, gain, below.name if below else "")


def ceiling_over_first(ladder: Ladder, rung: Rung, resource: Resource) -> float | None:
    """Time of the first rung / time at the roof, over the problems of the rung."""
    shares = [(ratio.value, row["percent_of_roof"]) for row, ratio in zip(
        [row for row in ladder.of(rung, None, resource) if row["speedup_vs_serial"]],
        ladder.speedups(rung, None, resource)) if row["percent_of_roof"]]
    return geometric_mean(value * 100 / share for value, share in shares)


class Bought(NamedTuple):
    technique: str
    name: str
    gain: Mean
    rungs: int


def bought(chain: Chain) -> list[Bought]:
    """Per idea, the product of the gains of its rungs in the chain, the largest first. In files
    without ideas, per technique: there a threaded rung whose rung below ran on as many threads
    gains by its code, not by its threads."""
    found: dict[tuple[str, str], list[Mean]] = {}
    for below, bar in zip(chain.bars, chain.bars[1:]):
        if bar.gain:
            technique, idea = bar.rung.technique, bar.rung.idea
            by_code = (technique in ("openmp", "pthread")
                       and below.resource.threads == bar.resource.threads > 1)
            name = (f"{idea[0].upper()}{idea[1:]}" if idea else
                    "Better threaded code" if by_code else
                    TECHNIQUE_NAMES.get(technique, technique))
            if idea:  # one entry for each idea, in the colour of its first rung
                technique = next((t for t, n in found if n == name), technique)
            found.setdefault((technique, name), []).append(bar.gain)
    products = []
    for (technique, name), gains in found.items():
        value = math.prod(gain.value for gain in gains)
        down = math.hypot(*(math.log(gain.value / gain.low) for gain in gains))
        up = math.hypot(*(math.log(gain.high / gain.value) for gain in gains))
        mean = Mean(value, value * math.exp(-down), value * math.exp(up),
                    min(gain.count for gain in gains))
        products.append(Bought(technique, name, mean, len(gains)))
    return sorted(products, key=lambda b: -b.gain.value)


def main_chain(ladders: Sequence[Ladder]) -> Chain | None:
    chains = [chain for name in ORDER for ladder in ladders if ladder.primitive == name
              if (chain := chain_of(ladder))]
    return next((chain for chain in chains if len(chain.bars) > 1), None)


def main_step(run: Run) -> StepComparison | None:
    """The network whose step gained most over its first rungs, on the most threads."""
    found = [c for c in step_comparisons(configurations(run.step or [])) if c.first
             and c.first is not c.own]
    serial = [c for c in found if c.first and c.first.use == "serial"]
    return max(serial or found, key=lambda c: c.first.total_s / c.own.total_s, default=None)


def interval(mean: Mean) -> str:
    return f"{times(mean.low)} to {times(mean.high)}".replace("x to", " to").replace("x", "×")


def why_no_ceiling(chain: Chain, refused: dict[int, str]) -> str:
    reason = refused.get(chain.resource.threads)
    return f"the ceilings were refused: {reason}" if reason else "no ceiling was measured"


def sentence(chain: Chain | None, step: StepComparison | None, refused: dict[int, str]) -> Markup:
    """refused: by threads, why there are no ceilings."""
    parts = []
    if chain:
        last, shares = chain.bars[-1], bought(chain)
        most = shares[0]
        parts.append(Markup("{} bought the most: a factor of <b>{}</b> (95 % interval {})").format(
            most.name, bare(most.gain.value), interval(most.gain)))
        others = [inside(b.name) for b in shares[1:] if b.gain.low > 1]
        parts.append(Markup("{} {} <b>{}</b> ({}) as fast as {} on {}").format(
            f"; with {listed(others)} it makes" if others else "; it makes",
            chain.ladder.primitive, shown(last.total.value), interval(last.total),
            "the textbook loop" if chain.bars[0].rung.technique == "serial"
            else chain.bars[0].rung.name, chain.resource.label))
        if chain.compiler:
            parts.append(Markup(", <b>{}</b> as fast as what the compiler makes of the best plain "
                                "loop").format(
                shown(last.total.value / chain.compiler.total.value)))
        parts.append(
            Markup(", <b>{}</b> of the machine's measured ceiling").format(
                percent(chain.of_ceiling))
            if chain.of_ceiling else Markup(" ({})").format(why_no_ceiling(chain, refused)))
    if step and step.first:
        parts.append(Markup("{} training step of {} takes <b>{} ms</b> instead of {} ms with the "
                            "best rungs").format(
            ", and a" if parts else "A", step.own.network, milliseconds(step.own.total_s),
            milliseconds(step.first.total_s)))
    if not parts:
        return Markup("This run has no two rungs of one ladder to compare; <code>make bench</code> "
                      "measures them.")
    return Markup("").join([*parts, "."])


def listed(names: Sequence[str]) -> str:
    """a, b and c"""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def inside(name: str) -> str:
    """A name as it stands inside a sentence."""
    keeps = name in TECHNIQUE_NAMES.values() and not name.startswith("Better")
    return name if keeps else name[0].lower() + name[1:]


def bare(value: float) -> str:
    return times(value).removesuffix("x")
