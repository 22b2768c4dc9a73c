"""The first screen: one sentence, one ladder, one step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from plots.data import schema
from plots.data.chain import Chain, bought, interval, main_chain, main_step, sentence
from plots.data.names import technique_in_name
from plots.data.numbers import milliseconds, shown
from plots.data.overview import StepComparison
from plots.data.ratios import Ladder, Mean, has_time
from plots.data.reading import Run
from plots.data.steps import Configuration
from plots.page import svg

ROW = 50        # pixels
LEAST_NAMED = 7.0   # percent of a bar: narrower parts have no name in them
OUTSIDE = "outside the layers"
HEADROOM = 1.02  # of the axis beyond its largest value


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
    technique_of = {row["variant"]: row["technique"] for row in run.summary or [] if has_time(row)}
    problems = chain.bars[-1].total.count if chain else 0
    return {
        "sentence": sentence(chain, step, run.refused_ceilings),
        "chain": chain,
        "bought": [(b, b.name, shown(b.gain.value), interval(b.gain), doubt(b.gain))
                   for b in bought(chain)] if chain else [],
        "ladder": ladder_svg(chain, ideas.get(chain.ladder.primitive, {})) if chain else None,
        "problems": problems,
        "ideas": [(bar.rung, shown(bar.gain.value),
                   ideas.get(chain.ladder.primitive, {}).get(bar.rung.name, ""))
                  for bar in chain.bars if bar.gain] if chain else [],
        "step": step_svg(step, technique_of) if step else None,
        "network": step.own.network if step else "",
        "techniques": techniques_in(chain),
        "disturbed": disturbed_share(run),
    }


def disturbed_share(run: Run) -> float | None:
    noise = (run.environment or {}).get("noise") or {}
    return noise["disturbed"] / noise["repetitions"] if noise.get("repetitions") else None


