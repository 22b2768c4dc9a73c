"""Inline SVG. Text stays text; colours are CSS variables, so that both themes share a picture.

A colour is a CSS class: t-<technique> for techniques, or `m` with the variables --l and --d for
others. Bars are placed in percent of the width, so that their text keeps its size on narrow
screens.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup, escape
from matplotlib.colors import to_hex, to_rgb

from plots.charts import style

LIGHT, DARK = "#ffffff", "#14171c"  # backgrounds of the two themes
LEAST_CONTRAST = 3.0  # of graphics to their background (WCAG 2.1, 1.4.11)
MOST_CONTRAST = 12.0  # that the dark theme gives to black


def luminance(colour: str) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear))


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def readable(colour: str, background: str, least: float = LEAST_CONTRAST) -> str:
    """The colour, moved towards the other end of the background as far as the contrast needs."""
    end = 1.0 if luminance(background) < 0.5 else 0.0
    for step in range(21):
        moved = to_hex([c + (end - c) * step / 20 for c in to_rgb(colour)])
        if contrast(moved, background) >= least:
            return moved
    return moved


def technique_colours() -> dict[str, tuple[str, str]]:
    """Of every technique of the charts, the colour in the light and in the dark theme."""
    return {technique: both_themes(colour) for technique, colour in style.COLOURS.items()}


def both_themes(colour: str) -> tuple[str, str]:
    """In the dark theme a colour stands out as much as in the light one, so that black becomes
    almost white."""
    light = readable(colour, LIGHT)
    return light, readable(colour, DARK, min(contrast(light, LIGHT), MOST_CONTRAST))


def text_on(colour: str) -> str:
    return max("#ffffff", "#101215", key=lambda text: contrast(text, colour))


def technique_class(technique: str) -> str:
    return f"t-{technique}" if technique in style.COLOURS else "t-none"


def colour_attributes(colour: str) -> Markup:
    light, dark = both_themes(colour)
    return Markup('class="m" style="--l:{};--d:{}"').format(light, dark)


def place_log(value: float, low: float, high: float) -> float:
    """0 to 1 between the limits."""
    return (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))


def log_ticks(low: float, high: float) -> list[float]:
    decades = math.log10(high / low)
    subs = (1, 2, 5) if decades < 2 else (1, 3) if decades < 2.6 else (1,)
    ticks = [sub * 10.0 ** power
             for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
             for sub in subs]
    found = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
    return found[::max(1, math.ceil(len(found) / 6))]


def linear_ticks(low: float, high: float) -> list[float]:
    raw = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)
    return [step * i
            for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


@dataclass
class Axis:
    label: str
    low: float
    high: float
    logarithmic: bool = False

    @classmethod
    def around(cls, label: str, values: Iterable[float], logarithmic: bool, margin: float = 0.06,
               low: float | None = None) -> Axis:
        found = [value for value in values if math.isfinite(value)
                 and (value > 0 or not logarithmic)]
        least, most = (min(found), max(found)) if found else (0.1, 1.0)
        if logarithmic:
            factor = (most / least) ** margin if most > least else 2.0
            return cls(label, least / factor, most * factor, True)
        least = low if low is not None else least
        space = (most - least) * margin or abs(most) * 0.1 or 1.0
        return cls(label, least if low is not None else least - space, most + space)

    def place(self, value: float) -> float:
        if self.logarithmic:
            return place_log(max(value, self.low), self.low, self.high)
        return (value - self.low) / (self.high - self.low)

    @property
    def ticks(self) -> list[float]:
        return log_ticks(self.low,
                         self.high) if self.logarithmic else linear_ticks(self.low, self.high)


class Series(NamedTuple):
    """`colour` are the attributes of its group: a class, or those of colour_attributes()."""
    name: str
    colour: Markup
    points: Sequence[tuple[float, float]]
    band: Sequence[tuple[float, float, float]] = ()  # x, low, high
    line: bool = True
    dash: str = ""


class Guide(NamedTuple):
    """A dashed line through two points of the data, with a name at its right or upper end."""
    points: Sequence[tuple[float, float]]
    name: str


def technique_colour(technique: str) -> Markup:
    return Markup('class="{}"').format(technique_class(technique))


def tick_text(value: float) -> str:
    if value == 0:
        return "0"
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:.3g}" if abs(value) >= 1e-3 else f"{value:.0e}".replace("e-0", "e-")


def chart(title: str, series: Sequence[Series], x: Axis, y: Axis, guides: Sequence[Guide] = (),
          width: int = 340, height: int = 220) -> Markup:
    """A small chart, at its natural size up to the width of its column."""
    left, right, top, bottom = 46, 10, 10, 36
    inner_w, inner_h = width - left - right, height - top - bottom

    def at(px: float, py: float) -> tuple[str, str]:
        return f"{left + x.place(px) * inner_w:.1f}", f"{top + (1 - y.place(py)) * inner_h:.1f}"

    out = [Markup('<svg class="chart" viewBox="0 0 {} {}" width="{}" role="img" '
                  'aria-label="{}">').format(
        width, height, width, title)]
    for tick in x.ticks:
        px, _ = at(tick, y.low)
        out.append(f'<path class="grid" d="M{px} {top}V{top + inner_h}"/>'
                   f'<text x="{px}" y="{top + inner_h + 14}" '
                   f'text-anchor="middle">{tick_text(tick)}</text>')
    for tick in y.ticks:
        _, py = at(x.low, tick)
        out.append(f'<path class="grid" d="M{left} {py}H{left + inner_w}"/>'
                   f'<text x="{left - 5}" y="{float(py) + 4:.1f}" '
                   f'text-anchor="end">{tick_text(tick)}</text>')
    out.append(str(Markup('<text class="axis" x="{}" y="{}" text-anchor="middle">{}</text>').format(
        left + inner_w / 2, height - 5, x.label)))
    out.append(str(Markup('<text class="axis" transform="translate(11 {}) rotate(-90)" '
                          'text-anchor="middle">{}</text>').format(top + inner_h / 2, y.label)))
    for guide in guides:
        (x1, y1), (x2, y2) = (at(*point) for point in guide.points)
        out.append(f'<path class="guide" d="M{x1} {y1}L{x2} {y2}"/>')
        if guide.name:
            out.append(str(Markup('<text class="note" x="{}" y="{}" '
                                  'text-anchor="end">{}</text>').format(
                x2, f"{max(float(y2) - 4, 9):.1f}", guide.name)))
    for one in series:
        out.append(f"<g {one.colour}>")
        if one.band:
            upper = [",".join(at(px, high)) for px, _, high in one.band]
            lower = [",".join(at(px, low)) for px, low, _ in reversed(one.band)]
            out.append(f'<path class="band" d="M{" ".join(upper + lower)}Z"/>')
        if one.line and len(one.points) > 1:
            dash = f' stroke-dasharray="{one.dash}"' if one.dash else ""
            out.append(f'<path class="line"{dash} '
                       f'd="M{" ".join(",".join(at(*p)) for p in one.points)}">'
                       f"<title>{escape(one.name)}</title></path>")
        else:
            for px, py in (at(*point) for point in one.points):
                out.append(f'<circle cx="{px}" cy="{py}" r="3"/>')
        out.append("</g>")
    out.append("</svg>")
    return Markup("".join(str(part) for part in out))


def legend(series: Sequence[Series]) -> Markup:
    items = Markup("").join(
        Markup('<li><span {}><i class="key"></i></span>{}</li>').format(one.colour, one.name)
        for one in series)
    return Markup('<ul class="legend">{}</ul>').format(items)
