"""The answer of a ladder: the chain from the first rung to the best rung of one primitive, each on
the most threads on which it ran, what each idea bought in it, and both as a sentence. Gains are
geometric means over the problems of all rungs of the chain."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from markupsafe import Markup

from plots.data.names import Rung, is_by_compiler, split_isa
from plots.data.numbers import listed, milliseconds, percent, shown, times
from plots.data.overview import StepComparison, best_rung, step_comparisons
from plots.data.ratios import (
    Ladder,
    Mean,
    Resource,
    geometric_mean,
    mean_ratio,
    problem_key,
    resources_of,
    rounds_operands,
)
from plots.data.reading import Run, grouped
from plots.data.steps import configurations

# Of several primitives, the first of these whose ladder has at least two measured rungs.
ORDER = ("matmul", "convolution", "max_pool", "average_pool", "sgd_update", "all_reduce", "reorder",
         "low_precision", "layers")
TECHNIQUE_NAMES = {"serial": "Better serial code", "simd": "SIMD", "openmp": "OpenMP threads",
                   "pthread": "Pthreads", "mpi": "MPI", "cuda": "CUDA",
                   "opencl": "OpenCL", "vendor": "The vendor's library"}


LARGE_S = 20e-6  # of the best rung: a problem that takes less shows calls and forks
KINDS = ("main", "compiler", "branch", "library")


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
    large: dict[str, Mean]    # by rung, the gain over the bar below on problems of LARGE_S or more
    libraries: list[Bar]      # the fastest on each resource of the bars
    compiler: Bar | None      # what the compiler makes of the best plain loop
    beside_compiler: Bar | None  # the fastest of the bars' rungs on the compiler's threads
    ceiling: float | None     # of the roof over the first rung
    of_ceiling: float | None  # percent, of the best rung

    @property
    def library(self) -> Bar | None:
        return next((bar for bar in self.libraries if bar.resource == self.resource), None)


class Group(NamedTuple):
    """Rungs that stand together in a table or a chart."""
    kind: str        # one of KINDS
    is_branch: bool  # then its best rung stands for all
    rungs: list[Rung]


def main_resource(ladder: Ladder) -> Resource | None:
    """Of the CPU, or the GPU if nothing ran on the CPU."""
    return next(iter(main_resources(ladder)), None)


def main_resources(ladder: Ladder) -> list[Resource]:
    """Of each device the most threads on its fewest ranks; the CPU first."""
    found = grouped(resources_of(row for row in ladder.measured if row["technique"] != "vendor"),
                    lambda resource: resource.device)
    return [[r for r in of_device if r.ranks == of_device[0].ranks][-1]
            for of_device in found.values()]


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
    path = path_to(ladder, best.rung)
    ladder = on_common_problems(ladder, path, resource)
    bars = [bar for i, rung in enumerate(path)
            if (bar := bar_of(ladder, rung, resource, path[i - 1] if i else None))]
    if not bars:
        return None
    ceiling = ceiling_over_first(ladder, best.rung, resource)
    libraries = [fastest_of_most_problems(
        bar for rung in ladder.measured_rungs if rung.technique == "vendor"
        and not ladder.is_set_apart(rung)
        and (bar := bar_of(ladder, rung, on, None)) and bar.resource == on)
        for on in sorted({bar.resource for bar in bars})]
    compiler = fastest_of_most_problems(bar for rung in ladder.measured_rungs
                                        if is_by_compiler(rung)
                                        and (bar := bar_of(ladder, rung, resource, None)))
    beside = compiler and fastest_of_most_problems(
        bar for rung in path if (bar := bar_of(ladder, rung, compiler.resource, None)))
    return Chain(ladder, resource, bars, gains_of_large(ladder, path, bars[-1]),
                 [bar for bar in libraries if bar], compiler, beside, ceiling,
                 ladder.column_mean("percent_of_roof", best.rung, None, resource))


def gains_of_large(ladder: Ladder, path: Sequence[Rung], best: Bar) -> dict[str, Mean]:
    """Empty if all problems are large, or none."""
    rows = ladder.compared(best.rung, None, best.resource)
    large = {problem_key(row) for row in rows if row["median_s"] >= LARGE_S}
    if not 0 < len(large) < len(rows):
        return {}
    ladder = replace(ladder, measured=[row for row in ladder.measured if problem_key(row) in large])
    bars = [bar_of(ladder, rung, best.resource, below) for rung, below in zip(path[1:], path)]
    return {bar.rung.name: bar.gain for bar in bars if bar and bar.gain}


def path_to(ladder: Ladder, rung: Rung | None) -> list[Rung]:
    """From the first rung to this one."""
    path: list[Rung] = []
    while rung is not None and rung not in path:
        path.insert(0, rung)
        rung = ladder.base_of(rung)
    return path


def groups_of(ladder: Ladder, rungs: Sequence[Rung]) -> list[Group]:
    """The rungs from the first to the best one of each device, what the compiler makes of them, the
    branches off them, and the libraries. Rungs that leave the same rung by the same idea and
    technique, and all or none of which round operands, are one branch, with all that builds on
    them, as are algorithms that a library can be told to use."""
    main: set[str] = set()
    for resource in main_resources(ladder):
        best = best_rung(ladder, None, resource)
        main |= {split_isa(rung.name)[0] for rung in path_to(ladder, best and best.rung)}
    found: dict[tuple, Group] = {}
    for rung in rungs:
        family = split_isa(rung.name)[0]
        if rung.technique == "vendor":
            key: tuple = ("library", rung.builds_on)
        elif family in main:
            key = ("main",)
        elif is_by_compiler(rung) or family.endswith("_omp_simd"):
            key = ("compiler",)
        else:
            path = path_to(ladder, rung)
            at = next((i for i in reversed(range(len(path)))
                       if split_isa(path[i].name)[0] in main), -1)
            first = path[at + 1]
            key = ("branch", path[at].name if at >= 0 else "", first.idea, first.technique,
                   any(map(rounds_operands, ladder.of(rung))))
        is_branch = key[0] == "branch" or key[0] == "library" and rung.builds_on != ""
        found.setdefault(key, Group(key[0], is_branch, [])).rungs.append(rung)
    return sorted(found.values(), key=lambda group: KINDS.index(group.kind))


def best_of_branch(ladder: Ladder, rungs: Sequence[Rung], direction: str | None = None) -> Rung:
    """The rung that gains most over the first one, on its most threads; without such a gain, the
    last."""
    def gain(rung: Rung) -> float:
        on = resources_of(ladder.of(rung, direction))
        mean = mean_ratio(ladder.speedups(rung, direction, on[-1])) if on else None
        return mean.value if mean else 0.0

    return max(reversed(rungs), key=gain)


def fastest_of_most_problems(found: Iterable[Bar]) -> Bar | None:
    bars = list(found)
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
            most.name, times(most.gain.value).removesuffix("x"), interval(most.gain)))
        others = [inside(b.name) for b in shares[1:] if b.gain.low > 1]
        parts.append(Markup("{} {} <b>{}</b> ({}) as fast as {} on {}").format(
            f"; with {listed(others)} it makes" if others else "; it makes",
            chain.ladder.primitive, shown(last.total.value), interval(last.total),
            "the textbook loop" if chain.bars[0].rung.technique == "serial"
            else chain.bars[0].rung.name, chain.resource.label))
        if chain.compiler and chain.beside_compiler:
            parts.append(Markup(", on {} <b>{}</b> as fast as what the compiler makes of the best "
                                "plain loop").format(
                chain.compiler.resource.label,
                shown(chain.beside_compiler.total.value / chain.compiler.total.value)))
        parts.append(
            Markup(", <b>{}</b> of the machine's measured ceiling").format(
                percent(chain.of_ceiling))
            if chain.of_ceiling else Markup(" ({})").format(why_no_ceiling(chain, refused)))
    if step and step.first:
        library = (Markup("{} ms with the libraries, ").format(milliseconds(step.vendor.total_s))
                   if step.vendor else "")
        parts.append(Markup("{} training step of {} takes <b>{} ms</b> with the best rung for each "
                            "layer on {}, {}{} ms with textbook loops on {}").format(
            ". A" if parts else "A", step.own.network, milliseconds(step.own.total_s),
            step.own.resource.label, library, milliseconds(step.first.total_s),
            step.first.resource.label))
    if not parts:
        return Markup("This run has no two rungs of one ladder to compare; <code>make bench</code> "
                      "measures them.")
    return Markup("").join([*parts, "."])


def inside(name: str) -> str:
    """A name as it stands inside a sentence."""
    keeps = name in TECHNIQUE_NAMES.values() and not name.startswith("Better")
    return name if keeps else name[0].lower() + name[1:]
