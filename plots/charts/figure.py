"""One figure for a report: panels, a title, a legend under the panels and a caption line."""

from __future__ import annotations

import functools
import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from plots.charts import style
from plots.data.numbers import with_prefix
from plots.data.provenance import provenance
from plots.data.ratios import Resource
from plots.data.reading import Run

WIDTH = 6.6   # inches: the text width of a report
FORMATS = ("svg", "pdf", "png")
PNG_DPI = 160

_LEGEND_ROW = 0.165   # inches
_CAPTION_ROW = 0.135
_CAPTION_CHARACTERS = 126
_TITLE_CHARACTERS = 82
_TITLE_ROW = 0.175
_LEGEND_CHARACTER = 0.06
_LEGEND_HANDLE = 0.47  # with the space to the next entry


class Page:
    """`count` panels are in `axes` (rows x columns); `panel_height` is in inches. The title is the
    finding if there is one, with the name below it, else the name. `y_label` stands at the left of
    each row."""

    def __init__(self, name: str, caption: str, count: int, columns: int, panel_height: float,
                 legend: Sequence[Artist] = (), legend_columns: int = 6, share_x: bool = False,
                 share_y: bool | str = False, width_ratios: Sequence[float] | None = None,
                 finding: str = "", y_label: str = ""):
        rows = -(-count // columns)
        title = textwrap.wrap(finding or name, _TITLE_CHARACTERS)
        head = 0.09 + _TITLE_ROW * len(title) + (0.15 if finding else 0)
        lines = [line for paragraph in caption.splitlines()
                 for line in textwrap.wrap(paragraph, _CAPTION_CHARACTERS)]
        legend_columns = columns_that_fit(legend, legend_columns)
        legend_rows = math.ceil(len(legend) / legend_columns)
        foot = 0.06 + _CAPTION_ROW * len(lines) + _LEGEND_ROW * legend_rows
        height = head + rows * panel_height + foot
        self.figure = Figure(figsize=(WIDTH, height), layout="constrained")
        FigureCanvasAgg(self.figure)
        self.figure.get_layout_engine().set(
            rect=(0, foot / height, 1, 1 - (foot + head) / height), w_pad=0.06, h_pad=0.05)
        self._laid_out = False
        self._placements: list[Callable[[], None]] = []
        self.axes = self.figure.subplots(
            rows, columns, sharex=share_x, sharey=share_y, squeeze=False,
            gridspec_kw={"width_ratios": width_ratios})
        for axes in self.panels()[count:]:
            axes.set_visible(False)
        for axes in self.axes[:, 0]:
            axes.set_ylabel(y_label)
        self.figure.text(0.012, 1 - 0.06 / height, "\n".join(title), fontsize=style.TITLE,
                         fontweight="bold", va="top", ha="left", linespacing=1.1, gid="title")
        if finding:
            self.figure.text(0.012, 1 - (head - 0.17) / height, name, fontsize=style.SUBTITLE,
                             color=style.CAPTION, va="top", ha="left", gid="subtitle")
        self.figure.text(0.012, 0.03 / height, "\n".join(lines), fontsize=style.SMALL,
                         color=style.CAPTION,
                         va="bottom", ha="left", linespacing=1.35, gid="caption")
        if legend:
            self.figure.legend(
                handles=row_by_row(legend, legend_columns), loc="lower center",
                ncol=legend_columns,
                bbox_to_anchor=(0.5, (foot - _LEGEND_ROW * legend_rows - 0.02) / height),
                borderaxespad=0, handlelength=2.6, columnspacing=1.3, labelspacing=0.35)

    def after_layout(self, place: Callable[[], None]) -> None:
        """Calls `place` once the panels have their final sizes, for labels that must avoid
        others."""
        self._placements.append(place)

    def lay_out(self) -> None:
        """Fixes the layout and places the labels; does nothing the second time."""
        if self._laid_out:
            return
        self._laid_out = True
        with matplotlib.rc_context(style.RC):
            # The layout is the same in all formats; computing it once saves most of the time.
            self.figure.draw_without_rendering()
            self.figure.set_layout_engine("none")
            for place in self._placements:
                place()

    def panels(self) -> list[Axes]:
        return list(self.axes.flat)


def chart(name: str, needs: str) -> Callable:
    """Decorates a draw() that needs this CSV file of the run. A draw() that returns a page, or the
    reason why there is none, draws the chart of this name alone."""
    def decorated(draw: Callable) -> Callable:
        @functools.wraps(draw)
        def pairs(run: Run) -> Iterable[tuple[str, Page | str]]:
            if getattr(run, needs) is None:
                return [(name, f"no {needs}.csv")]
            drawn = draw(run)
            return [(name, drawn)] if isinstance(drawn, (Page, str)) else drawn
        return pairs
    return decorated


def columns_that_fit(legend: Sequence[Artist], most: int) -> int:
    """The most columns, each as wide as its longest label, that fit the page."""
    for columns in range(min(most, len(legend)), 1, -1):
        longest = [max(len(entry.get_label()) for entry in legend[column::columns])
                   for column in range(columns)]
        if columns * _LEGEND_HANDLE + sum(longest) * _LEGEND_CHARACTER <= WIDTH:
            return columns
    return 1


def row_by_row(entries: Sequence, columns: int) -> list:
    """The order in which a legend, which Matplotlib fills by columns, reads row by row."""
    return [entry for column in range(columns) for entry in entries[column::columns]]


def caption(run: Run, resources: Iterable[Resource], remark: str = "") -> str:
    """The text under a chart: the remark, then machine, threads, commit and data."""
    machine, commit, data = provenance(run)
    facts = [machine, label_of_all(resources), f"commit {commit}", f"data: {data}"]
    return f"{remark}\n" + "; ".join(fact for fact in facts if fact) + "."


def label_of_all(resources: Iterable[Resource]) -> str:
    """1, 2, 4 threads rather than 1 thread, 2 threads, 4 threads."""
    groups: dict[str, list[str]] = {}
    for label in (resource.label for resource in sorted(set(resources))):
        count, _, unit = label.partition(" ")
        if count.isdigit() and unit.rstrip("s") in ("thread", "rank"):
            groups.setdefault(unit.rstrip("s"), []).append(count)
        else:
            groups[label] = []
    return ", ".join(f"{', '.join(counts)} {unit}{'' if counts == ['1'] else 's'}" if counts
                     else unit for unit, counts in groups.items())


def save(page: Page, folder: Path, name: str) -> None:
    """Writes the three files without dates and versions: equal results give equal bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    metadata = {"svg": {"Date": None, "Creator": None},
                "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
                "png": {"Software": None}}
    with matplotlib.rc_context(style.RC):
        page.lay_out()
        for suffix in FORMATS:
            page.figure.savefig(folder / f"{name}.{suffix}", dpi=PNG_DPI,
                                metadata=metadata[suffix])


def plain_log(axis: Axis) -> None:
    """Labels 1, 10, 100 instead of powers of ten. Call it after the limits are set."""
    low, high = sorted(axis.get_view_interval())
    decades = math.log10(high / low)
    if decades < 0.8:
        subs = (1, 1.5, 2, 3, 4, 5, 7)
    elif decades < 1.7:
        subs = (1, 2, 5)
    elif decades < 3:
        subs = (1, 3)
    else:
        subs = (1,)
    axis.set_major_locator(LogLocator(base=10, subs=subs, numticks=6 if decades > 3 else 20))
    axis.set_major_formatter(FuncFormatter(lambda value, _: with_prefix(value)))
    axis.set_minor_formatter(NullFormatter())
