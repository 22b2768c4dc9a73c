"""A map of the fastest variants: a cell for each place, downwards, and length of the vector."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from string import ascii_uppercase

from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from plots.charts import style
from plots.charts.figure import Page
from plots.data.numbers import binary_size, microseconds, plural
from plots.data.reading import Row, grouped

Cell = tuple[Hashable, float]  # place, bytes of the vector


def fastest_rows(rows: Iterable[Row], cell_of: Callable[[Row], Cell],
                 time: str) -> dict[Cell, Row]:
    """The row with the least `time`, a column, of each cell."""
    return {cell: min(here, key=lambda row: row[time])
            for cell, here in grouped(rows, cell_of).items()}


def draw_winners(title: str, caption: str, winners: Mapping[Cell, Row], names: Sequence[str],
                 libraries: Mapping[Cell, Row], time: str,
                 label_of: Callable[[Hashable], str]) -> Page:
    """`names`: the variants among the winners, as in the legend. `libraries`: of each cell, the row
    over which a gain is stated."""
    places = sorted({place for place, _ in winners})
    sizes = sorted({size for _, size in winners})
    letters = dict(zip(names, map(letter, range(len(names)))))
    faces = {name: style.CELLS[i % len(style.CELLS)] for i, name in enumerate(names)}
    page = Page(title, caption, 1, 1, panel_height=0.6 + 0.55 * len(places), legend_columns=5,
                finding=most_cells(winners, letters),
                legend=[Line2D([], [], marker="s", linestyle="none", markersize=7,
                               markeredgecolor="#666666", color=faces[name],
                               label=f"{letters[name]}: {name}")
                        for name in names])
    axes = page.panels()[0]
    for (place, size), row in winners.items():
        x, y = sizes.index(size), places.index(place)
        axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=faces[row["variant"]],
                                 edgecolor="white", linewidth=1))
        library = libraries.get((place, size))
        gain = f"\n{library[time] / row[time]:.1f}x" if library else ""
        axes.text(x, y, f"{letters[row['variant']]}\n{microseconds(row[time])}{gain}", ha="center",
                  va="center", fontsize=style.SMALL, linespacing=1.15)
    axes.set_xlim(-0.5, len(sizes) - 0.5)
    axes.set_ylim(len(places) - 0.5, -0.5)
    axes.set_xticks(range(len(sizes)), [binary_size(size) for size in sizes], fontsize=style.SMALL)
    axes.set_yticks(range(len(places)), [label_of(place) for place in places])
    axes.grid(visible=False)
    axes.set_xlabel("length of the vector")
    return page


def letter(index: int) -> str:
    """A, B, ..., Z, A1, ..."""
    turn = index // len(ascii_uppercase)
    return ascii_uppercase[index % len(ascii_uppercase)] + (str(turn) if turn else "")


def most_cells(winners: Mapping[Cell, Row], names: Iterable[str]) -> str:
    """The variant that is the fastest in more than half of the cells."""
    count = Counter(row["variant"] for row in winners.values() if row["variant"] in set(names))
    best, cells = count.most_common(1)[0]
    if 2 * cells <= len(winners):
        return ""
    return f"{best} has the shortest time in {cells} of {plural(len(winners), 'cell')}"
