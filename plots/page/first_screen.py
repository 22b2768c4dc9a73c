"""The first screen: one sentence, one ladder, one step.

The ladder is the chain from the first rung to the best rung of one primitive, each on the most
threads on which it ran. Lengths are geometric means over the problems.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from markupsafe import Markup

from plots.data import schema
from plots.data.names import Rung, is_by_compiler, is_cpu, technique_in_name
from plots.data.numbers import milliseconds, percent, times
from plots.data.overview import StepComparison, best_rung, step_comparisons
from plots.data.ratios import (
    Ladder,
    Mean,
    Resource,
    geometric_mean,
    has_time,
    mean_ratio,
    problem_key,
    resources_of,
)
from plots.data.reading import Run
from plots.data.steps import Configuration, configurations
from plots.page import svg

# Of several primitives, the first of these whose ladder has at least two measured rungs.
ORDER = ("matmul", "convolution", "max_pool", "average_pool", "sgd_update", "all_reduce", "reorder")
TECHNIQUE_NAMES = {"serial": "Better serial code", "simd": "SIMD", "openmp": "OpenMP threads",
                   "pthread": "Pthreads", "mpi": "MPI", "cuda": "CUDA",
                   "vendor": "The vendor's library"}
ROW = 50        # pixels
LEAST_NAMED = 7.0   # percent of a bar: narrower parts have no name in them
OUTSIDE = "outside the layers"
HEADROOM = 1.02  # of the axis beyond its largest value


class Bar(NamedTuple):
    rung: Rung
    resource: Resource
    total: Mean               # times as fast as the first rung
    gain: Mean | None         # times as fast as the bar below
    below: str


class Idea(NamedTuple):
    """What a rung of the chain adds."""
    rung: Rung
    gain: str
    adds: str


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


def shown(value: float | None) -> str:
    return times(value).replace("x", "×")


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
            f"; with {' and '.join(others)} it makes" if others else "; it makes",
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


def inside(name: str) -> str:
    """A name as it stands inside a sentence."""
    keeps = name in TECHNIQUE_NAMES.values() and not name.startswith("Better")
    return name if keeps else name[0].lower() + name[1:]


def bare(value: float) -> str:
    return times(value).removesuffix("x")


def ladder_svg(chain: Chain, ideas: dict[str, str]) -> Markup:
    bars = [*chain.bars, *([chain.library] if chain.library else [])]
    low = min(1.0, *(bar.total.low for bar in bars))
    most = max(bar.total.high for bar in bars)
    high = max(most * HEADROOM if most > (chain.ceiling or 0) else chain.ceiling or 0, low * 1.5)

    def at(value: float) -> str:
        return f"{100 * svg.place_log(max(value, low), low, high):.2f}%"

    height = ROW * len(bars) + 44
    spoken = "; ".join(f"{bar.rung.name} {shown(bar.total.value)}"
                       + (f", {shown(bar.gain.value)} over {bar.below}" if bar.gain else "")
                       for bar in bars)
    out = [Markup('<svg class="ladder" width="100%" height="{}" role="img" '
                  'aria-label="{}">').format(
        height,
        f"Ladder of {chain.ladder.primitive}, times as fast as {bars[0].rung.name}: {spoken}. "
        + (f"Ceiling: {shown(chain.ceiling)}." if chain.ceiling else "No ceiling."))]
    foot = ROW * len(bars) + 6

    def hides_ceiling(tick: float) -> bool:
        """Whether there is no room beside it for the name of the ceiling."""
        place = svg.place_log(tick, low, high)
        return bool(chain.ceiling
                    and -0.27 < place - svg.place_log(chain.ceiling, low, high) < 0.06)

    for tick in svg.log_ticks(low, high):
        if hides_ceiling(tick):
            continue
        out.append(Markup('<line class="grid" x1="{0}" x2="{0}" y1="0" y2="{1}"/><text '
                          'class="tick" x="{0}" y="{2}" text-anchor="{3}">{4}×</text>').format(
            at(tick), foot, foot + 16, "start" if at(tick) == "0.00%" else "middle", f"{tick:g}"))
    if chain.ceiling:
        out.append(Markup('<line class="ceiling" x1="{0}" x2="{0}" y1="0" y2="{1}"/><text '
                          'class="tick strong" x="{0}" y="{2}" text-anchor="end">ceiling '
                          '{3}</text>').format(
            at(chain.ceiling), foot, foot + 16, shown(chain.ceiling)))
    for i, bar in enumerate(bars):
        y = ROW * i
        if bar is chain.library:
            out.append(Markup('<line class="guide" x1="0" x2="100%" y1="{0}" '
                              'y2="{0}"/>').format(y + 1))
        gain, more = "", ""  # `more` is left out on narrow screens
        if bar.gain:
            gain, more = shown(bar.gain.value), f" over {bar.below}"
        elif bar is chain.library:
            gain, more = "fastest library", ", for comparison"
        out.append(Markup('<text class="name" x="0" y="{}">{}</text>').format(y + 16,
                                                                              bar.rung.name))
        out.append(Markup('<text class="gain" x="100%" dx="-9" y="{}" text-anchor="end">{}<tspan '
                          'class="more">{}</tspan></text>').format(y + 16, gain, more))
        about = f"{bar.rung.technique}, {bar.resource.label}. {ideas.get(bar.rung.name, '')}"
        out.append(Markup('<g class="{}"><title>{}</title><rect class="bar" x="0" y="{}" '
                          'width="{}" height="16" rx="2"/>').format(
                              svg.technique_class(bar.rung.technique), about, y + 23,
       at(max(bar.total.value, low * (high / low) ** 0.004))))
        if bar.total.high > bar.total.low:
            out.append(whiskers(at(bar.total.low), at(bar.total.high), y + 31))
        inside = svg.place_log(max(bar.total.value, low), low, high) > 0.3
        x, anchor = (at(bar.total.low), "end") if inside else (at(bar.total.high), "start")
        out.append(Markup('<text class="value{}" x="{}" dx="{}" y="{}" '
                          'text-anchor="{}">{}</text></g>').format(
            " in" if inside else "", x, -7 if inside else 7, y + 35, anchor,
            shown(bar.total.value)))
    out.append("</svg>")
    return Markup("").join(Markup(part) if isinstance(part, str) else part for part in out)


def doubt(gain: Mean) -> str:
    """What an interval around 1, or below it, means."""
    return "" if gain.low > 1 else "a loss" if gain.high < 1 else "perhaps nothing"


class Part(NamedTuple):
    label: str
    technique: str
    phase: str
    seconds: float


def step_parts(c: Configuration, technique_of: dict[str, str]) -> list[Part]:
    """One part for each layer and phase, in the order of the step, and the rest of the total."""
    found: dict[tuple[str, str], Part] = {}
    for row in c.rows:
        layer = row["layer"].partition(".")[0]
        if row["phase"] == "update":
            layer = "update"
        key = (layer, row["phase"])
        technique = technique_of.get(row["variant"]) or technique_in_name(row["variant"]) or "none"
        seconds = row["median_s"] or 0.0
        old = found.get(key)
        if old is None:
            found[key] = Part(layer, technique, row["phase"], seconds)
        else:  # the technique of the longest operation
            found[key] = Part(layer, old.technique if old.seconds >= seconds else technique,
                              row["phase"], old.seconds + seconds)
    outside = c.total_s - sum(part.seconds for part in found.values())
    rest = [Part(OUTSIDE, "none", "other", outside)] if outside > 0 else []
    return [*found.values(), *rest]


def whiskers(low: str, high: str, y: int) -> Markup:
    """An interval on a bar, in per cent of the width, at the height y."""
    return Markup("").join(
        Markup('<g class="{}"><line x1="{low}" x2="{high}" y1="{y}" y2="{y}"/><line x1="{low}" '
               'x2="{low}" y1="{a}" y2="{b}"/><line x1="{high}" x2="{high}" y1="{a}" '
               'y2="{b}"/></g>').format(
            name, low=low, high=high, y=y, a=y - 4, b=y + 4)
        for name in ("halo", "whisker"))


def technique_of_variants(run: Run) -> dict[str, str]:
    return {row["variant"]: row["technique"] for row in run.summary or [] if has_time(row)}


def step_svg(step: StepComparison, technique_of: dict[str, str]) -> Markup:
    own, first = step.own, step.first
    assert first is not None
    longest = max(max((c.total_s, *(c.interval_s or ()))) for c in (own, first))
    rows = [(c, longest, f"{c.use}, {c.resource.label}", with_interval(c)) for c in (first, own)]
    if own.total_s < 0.5 * longest:
        rows.append((own, own.total_s, f"{own.use}, enlarged {longest / own.total_s:.0f} times",
                     "where its time goes"))
    out = [Markup('<svg class="step" width="100%" height="{}" role="img" aria-label="{}">').format(
        58 * len(rows),
        f"Training step of {own.network}: {first.label} {milliseconds(first.total_s)} ms, "
        f"{own.label} {milliseconds(own.total_s)} ms.")]
    for i, (c, scale, left, right) in enumerate(rows):
        y = 58 * i
        out.append(Markup('<text class="name" x="0" y="{0}">{1}</text><text class="gain" x="100%" '
                          'y="{0}" text-anchor="end">{2}</text>').format(y + 16, left, right))
        out.append(stacked(step_parts(c, technique_of), scale, y + 23, 26))
        if c.interval_s and scale == longest:
            out.append(whiskers(*(f"{100 * end / scale:.2f}%" for end in c.interval_s), y + 36))
        if c.total_s < 0.02 * scale:  # too short to be seen
            out.append(Markup('<rect class="sliver" x="0" y="{}" width="3" '
                              'height="26"/>').format(y + 23))
    out.append(Markup("</svg>"))
    return Markup("").join(out)


def with_interval(c: Configuration) -> str:
    if not c.interval_s:
        return f"{milliseconds(c.total_s)} ms"
    low, high = (milliseconds(end) for end in c.interval_s)
    return f"{milliseconds(c.total_s)} ms ({low} to {high})"


def stacked(parts: Sequence[Part], whole: float, y: int, height: int) -> Markup:
    """Parts one after another; backward is paler than forward, update has an outline only."""
    out, start = [], 0.0
    for part in parts:
        width = 100 * part.seconds / whole
        if width > 0.05:
            text = (Markup('<text class="in-part" x="{:.2f}%" dx="4" y="{}">{}</text>').format(
                start, y + height / 2 + 4, part.label)
                if width > max(LEAST_NAMED, 1.8 * len(part.label)) else "")
            out.append(Markup('<g class="{} {}"><title>{}</title><rect class="part" x="{:.2f}%" '
                              'y="{}" width="{:.2f}%" height="{}"/>{}</g>').format(
                svg.technique_class(part.technique), f"p-{part.phase}",
                f"{part.label} {part.phase}: {milliseconds(part.seconds)} ms, {width:.1f} "
                "%", start, y, width,
                height, text))
        start += width
    return Markup("").join(out)


def techniques_in(chain: Chain | None) -> list[str]:
    bars = [*chain.bars, *([chain.library] if chain.library else [])] if chain else []
    used = {bar.rung.technique for bar in bars}
    return [technique for technique in schema.TECHNIQUES if technique in used]


def first_screen(run: Run, ladders: Sequence[Ladder], ideas: dict[str, dict[str, str]]) -> dict:
    chain, step = main_chain(ladders), main_step(run)
    problems = chain.bars[-1].total.count if chain else 0
    return {
        "sentence": sentence(chain, step, run.refused_ceilings),
        "chain": chain,
        "bought": [(b, b.name, shown(b.gain.value), interval(b.gain), doubt(b.gain))
                   for b in bought(chain)] if chain else [],
        "ladder": ladder_svg(chain, ideas.get(chain.ladder.primitive, {})) if chain else None,
        "problems": problems,
        "ideas": [Idea(bar.rung, shown(bar.gain.value),
                       ideas.get(chain.ladder.primitive, {}).get(bar.rung.name, ""))
                  for bar in chain.bars if bar.gain] if chain else [],
        "step": step_svg(step, technique_of_variants(run)) if step else None,
        "network": step.own.network if step else "",
        "techniques": techniques_in(chain),
        "disturbed": disturbed_share(run),
    }


def disturbed_share(run: Run) -> float | None:
    noise = (run.environment or {}).get("noise") or {}
    return noise["disturbed"] / noise["repetitions"] if noise.get("repetitions") else None


