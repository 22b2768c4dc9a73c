"""What is wrong with the texts of a page: those that overlap, are cut or too small."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from plots.charts import style
from plots.charts.figure import Page
from plots.charts.labels import parts_of

TOLERANCE = 0.7  # pixels at 100 dots per inch: boxes have a margin around the letters


def faults(page: Page) -> list[str]:
    measurable(page)
    texts = list(visible_texts(page))
    boxes = {text: parts_of(text) for text in texts}
    found = [f"'{one.get_text()}' overlaps '{other.get_text()}'"
             for one, other in combinations(texts, 2)
             if any(overlap(a, b) for a in boxes[one] for b in boxes[other])]
    whole = page.figure.bbox.padded(TOLERANCE)
    found += [f"'{text.get_text()}' is cut" for text in texts
              if any(part.x0 < whole.x0 or part.x1 > whole.x1 or part.y0 < whole.y0
                     or part.y1 > whole.y1
                     for part in boxes[text])]
    return found + [f"'{text.get_text()}' has {text.get_fontsize()} points" for text in texts
                    if text.get_fontsize() < style.SMALL]


def text_of(page: Page, name: str) -> str:
    """The title, subtitle or caption."""
    text, = (text.get_text() for text in page.figure.texts if text.get_gid() == name)
    return text


def title_of(page: Page) -> str:
    return text_of(page, "title")


def measurable(page: Page) -> None:
    """Lays the page out and measures its texts in pixels again, as those of a saved SVG are not."""
    page.lay_out()
    with matplotlib.rc_context(style.RC):
        page.figure.draw_without_rendering()


def overlap(a: Bbox, b: Bbox) -> bool:
    return (min(a.x1, b.x1) - max(a.x0, b.x0) > TOLERANCE
            and min(a.y1, b.y1) - max(a.y0, b.y0) > TOLERANCE)


def visible_texts(page: Page) -> Iterator[Text]:
    figure = page.figure
    hidden: set[Text] = set()
    for axes in figure.axes:
        if not axes.get_visible():
            hidden.update(axes.findobj(Text))
        for axis in (axes.xaxis, axes.yaxis):
            hidden.update(labels_outside(axes, axis))
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip() and text not in hidden:
            yield text


def labels_outside(axes: Axes, axis: Axis) -> set[Text]:
    """Labels of ticks beyond the limits, which Matplotlib keeps but does not draw."""
    low, high = sorted(axis.get_view_interval())
    margin = 1e-9 * (high - low)
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    return {label for tick in ticks for label in (tick.label1, tick.label2)
            if not low - margin <= tick.get_loc() <= high + margin}
