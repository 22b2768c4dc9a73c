"""What each technique buys whatever the order: the attribution of a run, as sentence and
picture."""

from __future__ import annotations

from collections.abc import Callable

from markupsafe import Markup

from plots.data.attribution import Attribution, attributions, sentence
from plots.data.numbers import shown
from plots.data.reading import Row, Run
from plots.page import svg

ROW = 54          # pixels
NAME_WIDTH = 12.0  # of an end, in percent of the width of a narrow screen


def picture(found: Attribution) -> Markup:
    """A line for each technique from its least to its most gain, with its average."""
    rows = found.techniques
    low = min(1.0, *(row["least"] for row in rows)) / 1.15
    high = max(1.0, *(row["most"] for row in rows)) * 1.15

    def place(value: float) -> float:
        return 100 * svg.place_log(value, low, high)

    def at(value: float) -> str:
        return f"{place(value):.2f}%"

    foot = ROW * len(rows) + 6
    spoken = "; ".join(
        f"{row['technique']} {shown(row['average'])} on average, {shown(row['least'])} to "
        f"{shown(row['most'])}" for row in rows)
    out = [Markup('<svg class="ladder" width="100%" height="{}" role="img" '
                  'aria-label="{}">').format(
        foot + 24, f"Gain of each technique over all orders: {spoken}.")]
    for tick in svg.log_ticks(low, high):
        out.append(Markup('<line class="grid" x1="{0}" x2="{0}" y1="0" y2="{1}"/>'
                          '<text class="tick" x="{0}" y="{2}" text-anchor="middle">{3}×'
                          '</text>').format(
            at(tick), foot, foot + 16, f"{tick:g}"))
    out.append(Markup('<line class="ceiling" x1="{0}" x2="{0}" y1="0" y2="{1}"/>').format(
        at(1.0), foot))
    for i, row in enumerate(rows):
        out.append(technique_row(row, ROW * i, place))
    out.append(Markup("</svg>"))
    return Markup("").join(out)


def end_names(ends: list[tuple[float, str]]) -> list[tuple[float, str, str]]:
    """Place in percent, text and anchor of the names of two ends, the left one first. They share a
    line where they are close, and keep away from the edges, also on a narrow screen."""
    (left, left_name), (right, right_name) = ends
    if right - left < NAME_WIDTH:
        middle = (left + right) / 2
        anchor = ("start" if middle < NAME_WIDTH else
                  "end" if middle > 100 - NAME_WIDTH else "middle")
        return [({"start": left, "end": right}.get(anchor, middle), f"{left_name}, {right_name}",
                 anchor)]
    return [(left, left_name, "start" if left < NAME_WIDTH else "end"),
            (right, right_name, "end" if right > 100 - NAME_WIDTH else "start")]


def technique_row(row: Row, top: int, place: Callable[[float], float]) -> Markup:
    y = top + 30
    about = (f"{row['technique']}: {shown(row['average'])} on average, least {shown(row['least'])} "
             f"after {row['least_after']}, most {shown(row['most'])} after {row['most_after']}")
    out = [Markup('<g><title>{}</title><text class="name" x="0" y="{}">{}</text>'
                  '<text class="gain" x="100%" dx="-9" y="{}" text-anchor="end">{}<tspan '
                  'class="more"> on average, alone {}, last {}</tspan></text>').format(
        about, top + 16, row["technique"], top + 16, shown(row["average"]), shown(row["alone"]),
        shown(row["last"]))]
    out.append(Markup('<line class="range" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
        f"{place(row['least']):.2f}%", f"{place(row['most']):.2f}%", y, y))
    ends = sorted((place(row[name]), name) for name in ("alone", "last"))
    for x, _ in ends:
        out.append(Markup('<circle class="end" cx="{:.2f}%" cy="{}" r="4"/>').format(x, y))
    for x, name, anchor in end_names(ends):
        out.append(Markup('<text class="end-name" x="{:.2f}%" y="{}" text-anchor="{}">{}'
                          '</text>').format(x, y + 16, anchor, name))
    out.append(Markup('<circle class="average" cx="{}" cy="{}" r="6"/></g>').format(
        f"{place(row['average']):.2f}%", y))
    return Markup("").join(out)


def section(run: Run) -> list[dict]:
    """For the first screen: of each problem, its title, sentence and picture."""
    return [{"primitive": a.primitive, "shape": a.shape, "problem": a.problem,
             "sentence": sentence(a), "picture": picture(a)} for a in attributions(run)]

