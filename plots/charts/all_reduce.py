"""Charts of all-reduces over ranks: short vectors, the fastest rung by size and ranks, the cost
model, and compressed messages."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from plots.charts import style
from plots.charts.figure import Page, caption, plain_log
from plots.charts.findings import against_library
from plots.charts.labels import End, label_clusters, label_ends
from plots.charts.lines import draw_lines
from plots.charts.rung_rows import columns_of
from plots.charts.winners import Cell, draw_winners, fastest_rows
from plots.data.names import BY_MODEL
from plots.data.numbers import binary_size, plural
from plots.data.ratios import Ladder, geometric_mean, ladders, resource_of
from plots.data.reading import Row, Run, grouped

SHORT = 64 * 1024   # bytes
MOST_LINES = 6
MOST_LABELS = {1: 9, 2: 4, 3: 3}  # by the number of columns
MOST_NAMED_RATIOS = 3
EXACT = 1e-8  # where the logarithmic axis shows an error of 0


class Ranks(NamedTuple):
    """Where the ranks of a row run; sorts in this order."""
    hosts: int
    ranks: int

    @property
    def label(self) -> str:
        ranks = plural(self.ranks, "rank")
        return ranks if self.hosts == 1 else f"{ranks} on {self.hosts} hosts"


def draw(run: Run) -> Iterator[tuple[str, Page | str]]:
    ladder = next((found for found in ladders(run) if found.primitive == "all_reduce"), None)
    rows = [row for row in ladder.measured if is_over_processes(row)] if ladder else []
    for name, drawn in (("all-reduce-short", draw_short), ("all-reduce-map", draw_map),
                        ("all-reduce-model", draw_model),
                        ("all-reduce-compressed", draw_compressed)):
        yield name, drawn(run, ladder, rows) if rows else "no all_reduce rows; they need mpirun"


def is_over_processes(row: Row) -> bool:
    return row["direction"] == "sum" and (row["ranks"] or 1) > 1 and row["technique"] != "cuda"


def is_exact(row: Row) -> bool:
    return row["precision"] == "fp32" and not row.get("message_share")


def ranks_of(row: Row) -> Ranks:
    return Ranks(int(row.get("hosts") or 1), int(row["ranks"]))


def size_of(row: Row) -> float:
    return row["bytes"] / 2  # `bytes` counts the vector twice, for reading and writing


def label_sizes(axes: Axes, rows: Sequence[Row], most: int) -> None:
    """At most `most` lengths, as far apart as if they were spread evenly."""
    axes.set_xscale("log", base=2)
    sizes = sorted({size_of(row) for row in rows})
    step = math.log(sizes[-1] / sizes[0]) / most
    labelled: list[float] = []
    for size in sizes:
        if not labelled or math.log(size / labelled[-1]) >= step:
            labelled.append(size)
    axes.set_xticks(labelled, [binary_size(size) for size in labelled])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("length of the vector")


def notable(rows: Sequence[Row], ladder: Ladder) -> list[str]:
    """The first rung, and the rungs and the library that are closest to the fastest in the
    geometric mean over the problems; in the order of the ladder."""
    behind = behind_fastest(rows, lambda row: (ranks_of(row), row["bytes"]), "median_s")
    libraries = {rung.name for rung in ladder.rungs if rung.technique == "vendor"}
    nearest = sorted((name for name in behind if name not in libraries | {BY_MODEL}),
                     key=behind.get)
    nearest_libraries = sorted((name for name in behind if name in libraries), key=behind.get)
    chosen = {*nearest[:MOST_LINES - 2], *nearest_libraries[:1]}
    return [rung.name for rung in ladder.rungs
            if (rung.name in chosen or rung == ladder.first_rung) and rung.name in behind]


def behind_fastest(rows: Sequence[Row], cell_of: Callable[[Row], tuple],
                   time: str) -> dict[str, float]:
    """Per variant: its `time`, a column, over that of the fastest row, geometric mean over its
    cells."""
    fastest = fastest_rows(rows, cell_of, time)
    behind = {}
    for name, found in grouped(rows, lambda row: row["variant"]).items():
        behind[name] = geometric_mean(row[time] / fastest[cell_of(row)][time] for row in found)
    return behind


def draw_short(run: Run, ladder: Ladder, rows: Sequence[Row]) -> Page | str:
    short = [row for row in rows if size_of(row) <= SHORT and is_exact(row)]
    places = sorted({ranks_of(row) for row in short})
    if not places:
        return f"no vector of at most {binary_size(SHORT)}"
    if max(len({size_of(row) for row in short if ranks_of(row) == place}) for place in places) < 2:
        return "fewer than two sizes; SUITE=sweep has more"
    shown = notable(short, ladder)
    styles = style.variant_styles(ladder.rungs)
    columns = columns_of(len(places))
    page = Page("all_reduce: time of short vectors",
                caption(run, {resource_of(row) for row in short},
                        "Rungs that reduce exactly. Named: the first one, those nearest to the "
                        "fastest, and the nearest library. Bars: 95 % confidence."),
                len(places), columns, panel_height=2.7, share_y=True,
                finding=against_library(ladder, short), y_label="time (us)")
    for axes, place in zip(page.panels(), places):
        here = [row for row in short if ranks_of(row) == place]
        draw_lines(page, axes, here, shown, styles, size_of, lambda row: 1e6 * row["median_s"])
        axes.set_yscale("log")
        axes.set_title(place.label, loc="left")
        label_sizes(axes, here, MOST_LABELS[columns])
    plain_log(page.axes[0, 0].yaxis)
    return page


def draw_map(run: Run, ladder: Ladder, rows: Sequence[Row]) -> Page | str:
    exact = [row for row in rows if is_exact(row)]
    if len({size_of(row) for row in exact}) < 2:
        return "fewer than two sizes; SUITE=sweep has more"

    def cell_of(row: Row) -> Cell:
        return ranks_of(row), size_of(row)

    winners = fastest_rows((row for row in exact if row["variant"] != BY_MODEL), cell_of,
                           "median_s")
    libraries = fastest_rows((row for row in exact if row["technique"] == "vendor"), cell_of,
                             "median_s")
    won = {row["variant"] for row in winners.values()}
    return draw_winners("all_reduce: the fastest rung by length and ranks",
                        caption(run, {resource_of(row) for row in exact},
                                "In each cell: time in us; below it, how many times faster than "
                                "the fastest library. Rungs that reduce exactly."),
                        winners, [rung.name for rung in ladder.rungs if rung.name in won],
                        libraries, "median_s", lambda place: place.label)


def draw_model(run: Run, ladder: Ladder, rows: Sequence[Row]) -> Page | str:
    predicted = [row for row in rows if row.get("predicted_s")]
    if not predicted:
        return "no row has a predicted time"
    places = sorted({ranks_of(row) for row in predicted})
    columns = columns_of(len(places))
    page = Page("all_reduce: measured time over the time that the cost model predicts",
                caption(run, {resource_of(row) for row in predicted},
                        "One grey line per rung; black: median over the rungs. Named: the rungs "
                        "that are farthest from 1 at the longest vector. The model computes a time "
                        "from the measured cost of messages (alpha, beta), additions (gamma) and "
                        "copies. Errors: |measured / predicted - 1|, of rows whose 95 % interval "
                        "spans at most 20 % of the median."),
                len(places), columns, panel_height=2.8, share_y=True,
                y_label="measured / predicted")
    for axes, place in zip(page.panels(), places):
        here = [row for row in predicted if ranks_of(row) == place]
        draw_ratios(page, axes, here)
        axes.axhline(1, zorder=1, **style.DASHED)
        errors = sorted(abs(row["median_s"] / row["predicted_s"] - 1) for row in here
                        if not is_noisy(row))
        axes.set_yscale("log")
        title = place.label
        if errors:
            middle, high = (errors[int(q * (len(errors) - 1))] for q in (0.5, 0.9))
            title += f"\nerror: median {100 * middle:.0f} %, 90th percentile {100 * high:.0f} %"
        axes.set_title(title, loc="left", fontsize=style.SUBTITLE)
        label_sizes(axes, here, MOST_LABELS[columns])
    plain_log(page.axes[0, 0].yaxis)
    return page


def draw_ratios(page: Page, axes: Axes, rows: Sequence[Row]) -> None:
    """Measured over predicted time by length: a line per rung, and the median."""
    by_size: dict[float, list[float]] = {}
    ends = []
    for name, found in grouped(rows, lambda row: row["variant"]).items():
        points = sorted((size_of(row), row["median_s"] / row["predicted_s"]) for row in found)
        axes.plot(*zip(*points), color=style.BACKGROUND, linewidth=0.8, marker=".", markersize=2.5,
                  label=name)
        ends.append(End(*points[-1], name, style.CAPTION))
        for size, ratio in points:
            by_size.setdefault(size, []).append(ratio)
    middle = [(size, statistics.median(ratios)) for size, ratios in sorted(by_size.items())]
    axes.plot(*zip(*middle), color="black", linewidth=1.4, marker="o", markersize=3, label="median")
    ends.sort(key=lambda end: -abs(math.log(end.y)))
    label_ends(page, axes, [*ends[:MOST_NAMED_RATIOS], End(*middle[-1], "median", "black")])


def draw_compressed(run: Run, ladder: Ladder, rows: Sequence[Row]) -> Page | str:
    """Bytes saved against error, and the rate of the links below which compression pays."""
    compressed = [row for row in rows if row.get("message_share")]
    if not compressed:
        return "no row of a rung that compresses"
    names = [rung.name for rung in ladder.rungs
             if any(row["variant"] == rung.name for row in compressed)]
    styles = style.variant_styles(ladder.rungs)
    page = Page("all_reduce: compressed messages",
                caption(run, {resource_of(row) for row in compressed},
                        "Left: bytes sent relative to a ring of fp32, and the error of one call "
                        "relative to the norm of the result (uniform random values; rungs with "
                        "error feedback make up for it in later calls). Right: by the cost model, "
                        "compression is faster than every exact rung on links slower than the "
                        "line, and loses on faster ones; without a line it loses at every rate."),
                2, 2, panel_height=2.7)
    saved, pays = page.panels()
    place = max(ranks_of(row) for row in compressed)
    clusters, ends = {}, []
    for name in names:
        here = [row for row in compressed if row["variant"] == name and ranks_of(row) == place]
        longest = max(here, key=size_of, default=None)
        if longest is None:
            continue
        error = max(longest["relative_error"] or 0, EXACT)
        saved.plot([error], [longest["message_share"]], **styles[name].marks)
        clusters[name] = [(error, longest["message_share"])]
        points = sorted((row for row in here if row["break_even_gbit_per_s"]), key=size_of)
        pays.plot([size_of(row) for row in points],
                  [row["break_even_gbit_per_s"] for row in points], **styles[name].line)
        if points:
            ends.append(End(size_of(points[-1]), points[-1]["break_even_gbit_per_s"], name,
                            styles[name].colour))
    label_clusters(page, saved, clusters)
    label_ends(page, pays, ends)
    saved.set_xscale("log")
    saved.set_yscale("log")
    saved.set_xlim(EXACT / 3, 3)
    saved.set_xticks([EXACT, 1e-6, 1e-4, 1e-2, 1], ["exact", "1e-6", "1e-4", "0.01", "1"])
    saved.xaxis.set_minor_locator(NullLocator())
    saved.set_xlabel("relative error of one call")
    saved.set_ylabel("bytes sent / bytes of the ring")
    saved.set_title(f"longest vector, {place.label}", loc="left")
    pays.set_yscale("log")
    pays.set_ylabel("links (Gbit/s)")
    pays.set_title("compression pays below the line", loc="left")
    label_sizes(pays, compressed, MOST_LABELS[2])
    plain_log(saved.yaxis)
    plain_log(pays.yaxis)
    low, high = saved.get_ylim()
    saved.set_ylim(low / 1.6, high * 1.6)  # room for the names
    return page


def is_noisy(row: Row) -> bool:
    return (row["ci_high_s"] or 0) - (row["ci_low_s"] or 0) > 0.2 * row["median_s"]
