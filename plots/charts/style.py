"""The look of all charts: one colour and one marker per technique, and one per training mode.

The colours are those of Okabe and Ito (Color Universal Design, 2008), some of them darker so that
they differ under deuteranopia too, and grey for serial. Variants of one technique share its colour
and differ in marker filling and dashes, and in the marker where a technique has more variants than
fillings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.colors import to_hex, to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from plots.data.modes import FAMILIES
from plots.data.names import Rung

LOOKS = {  # colour and marker
    "serial": ("#9A9A9A", "o"),
    "simd": ("#0072B2", "s"),
    "openmp": ("#C94F00", "^"),
    "pthread": ("#A0529B", "v"),
    "mpi": ("#E69F00", "P"),
    "cuda": ("#00704F", "D"),
    "opencl": ("#8C1C13", "H"),
    "vendor": ("#000000", "*"),
}
COLOURS = {technique: colour for technique, (colour, _) in LOOKS.items()}
MARKERS = {technique: marker for technique, (_, marker) in LOOKS.items()}
NEUTRAL_COLOUR = "#56B4E9"  # steps with several techniques (`best`), layers outside the ladders
NEUTRAL_MARKER = "X"
EDGE = "#333333"
TEXT = "#222222"
CAPTION = "#555555"
REFERENCE = "#555555"  # ideal lines, roofs, 1x
BACKGROUND = "#C6C6C6"  # lines that are there for comparison only, without a name
ROOF_DASHES = (0, (5, 2))
DASHED = {"color": REFERENCE, "linewidth": 0.9, "linestyle": ROOF_DASHES}  # roofs, ideal lines

# Points. Charts are read at 900 pixels: 6.5 points are 12 pixels.
SMALL = 6.5
TITLE = 9.5
SUBTITLE = 7.5

FILLS = ("full", "none", "left", "right", "top", "bottom")
MORE_MARKERS = ("p", "h", "<", ">", "d")  # of a technique with more variants than FILLS
DASHES = ((0, ()), (0, (4, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)), (0, (7, 2)), (0, (2, 2)))

# Lines that stand for no technique: shades of two hues, far apart in lightness.
SERIES = ("#332288", "#DDAA33", "#882255", "#66AADD", "#117733", "#BB5566", "#000000", "#999933")

# Faces of the cells of a map, light enough for black text; a letter in the cell names the variant.
CELLS = ("#CFE3F1", "#F7E2B8", "#D3E8D4", "#F0CFE0", "#E3E3E3", "#FBD3BF", "#DDD3EE", "#FFF6B3",
         "#C4ECEA", "#E6D8C3")

# Shades of grey for the phases of a step, from light to dark.
PHASE_FACES = {"forward": "#F2F2F2", "backward": "#C4C4C4", "update": "#8A8A8A",
               "all_reduce": "#FFFFFF", "other": "#FFFFFF"}
PHASE_HATCHES = {"forward": "", "backward": "", "update": "", "all_reduce": "////",
                 "other": "---"}

RC = {
    "font.family": "DejaVu Sans",
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.labelsize": 7.5,
    "axes.edgecolor": "#888888",
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "text.color": TEXT,
    "axes.labelcolor": TEXT,
    "hatch.linewidth": 0.5,
    "lines.linewidth": 1.1,
    "svg.hashsalt": "stepladder",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}


# Training modes by family: single black, synchronous blue and green, asynchronous red and orange,
# threads of one process purple, parts of the model brown. A mode with other options has a shade of
# the colour of its name.
MODE_COLOURS = {
    "single": "#000000", "synchronous": "#1565C0", "synchronous,compressed=one_bit": "#64B5F6",
    "synchronous,compressed=top_k": "#00ACC1", "sharded": "#2E7D32", "parameter_server": "#8BC34A",
    "synchronous,overlap=yes": "#1A237E", "downpour": "#C62828", "ssp": "#F57C00",
    "local_sgd": "#EC407A", "token_ring": "#FFB300", "hogwild": "#6A1B9A",
    "threads_over_samples": "#B388EB", "actors_learner": "#7A7A8C", "model_parallel": "#6D4C41",
    "pipeline": "#C49A6C",
}
HYBRID_COLOUR = "#827717"


@dataclass(frozen=True)
class Style:
    colour: str
    marker: str
    fill: str = "full"
    dashes: tuple = DASHES[0]

    @property
    def marks(self) -> dict:
        """Keywords of plot() and errorbar() for markers without a line."""
        size = {"*": 7.0, "D": 4.0, "s": 4.2}.get(self.marker, 5.0)
        return {"color": self.colour, "marker": self.marker, "fillstyle": self.fill,
                "markersize": size, "markeredgewidth": 0.7, "markeredgecolor": self.edge,
                "linestyle": "none"}

    @property
    def line(self) -> dict:
        return self.marks | {"linestyle": self.dashes}

    @property
    def edge(self) -> str:
        return EDGE if self.colour == NEUTRAL_COLOUR else self.colour

    def handle(self, label: str, line: bool = True) -> Line2D:
        return Line2D([], [], label=label, **(self.line if line else self.marks))


def technique_style(technique: str) -> Style:
    return Style(*LOOKS.get(technique, (NEUTRAL_COLOUR, NEUTRAL_MARKER)))


def variant_styles(rungs: Iterable[Rung]) -> dict[str, Style]:
    """A style per variant, the same in every chart if called with all rungs of a primitive."""
    return distinct_styles({rung.name: rung.technique for rung in rungs})


def series_styles(names: Iterable[str]) -> dict[str, Style]:
    """Styles of lines that stand for no technique, as optimizers."""
    return {name: numbered_style(SERIES[i % len(SERIES)], i) for i, name in enumerate(names)}


def numbered_style(colour: str, number: int) -> Style:
    markers = tuple(MARKERS.values())
    return Style(colour, markers[number % len(markers)], dashes=DASHES[number % len(DASHES)])


def distinct_styles(technique_of: Mapping[str, str]) -> dict[str, Style]:
    """A style per name: that of its technique, varied among the names that share it."""
    styles = {}
    for technique in dict.fromkeys(technique_of.values()):
        names = [name for name, of_name in technique_of.items() if of_name == technique]
        plain = technique_style(technique)
        markers = (plain.marker, *MORE_MARKERS)
        for i, name in enumerate(names):
            styles[name] = Style(plain.colour, markers[i // len(FILLS) % len(markers)],
                                 FILLS[i % len(FILLS)], DASHES[i % len(DASHES)])
    return styles


def shade(colour: str, index: int, count: int) -> str:
    """The index-th of count shades, light to dark. The lightest stays close to the colour, because
    a lighter one would look like another technique."""
    if count == 1:
        return colour
    place = index / (count - 1)
    red, green, blue = to_rgb(colour)
    if place < 0.5:
        towards, amount = 1.0, 0.25 * (1 - 2 * place)
    else:
        towards, amount = 0.0, 0.45 * (2 * place - 1)
    return to_hex([c + (towards - c) * amount for c in (red, green, blue)])


def family_styles() -> dict[str, Style]:
    """A style per family of modes, with the colour of its first mode."""
    return {family: numbered_style(MODE_COLOURS[modes[0]] if modes else HYBRID_COLOUR, i)
            for i, (family, modes) in enumerate(FAMILIES.items())}


def mode_styles(modes: Iterable[str]) -> dict[str, Style]:
    """A style per mode. Modes of one family differ in marker and dashes too."""
    known = {mode: (MODE_COLOURS[mode], i) for family in FAMILIES.values()
             for i, mode in enumerate(family)}
    others: dict[str, list[str]] = {}  # modes with a colour of their name only
    for mode in dict.fromkeys(modes):
        if mode not in known:
            others.setdefault(mode.partition(",")[0], []).append(mode)
    for name, same in others.items():
        colour, i = known.get(name, (HYBRID_COLOUR, 0))
        for k, mode in enumerate(sorted(same)):
            known[mode] = shade(colour, k, len(same)), i + k
    return {mode: numbered_style(*look) for mode, look in known.items()}


def phase_patch(phase: str) -> dict:
    return {"facecolor": PHASE_FACES.get(phase, "#FFFFFF"), "edgecolor": "#6A6A6A",
            "hatch": PHASE_HATCHES.get(phase, "\\\\\\\\"), "linewidth": 0.5}


def phase_handle(phase: str) -> Patch:
    return Patch(label=phase.replace("_", "-"), **phase_patch(phase))


def technique_handles(techniques: Sequence[str]) -> list[Line2D]:
    """Legend entries in the order of the palette."""
    return [technique_style(t).handle(t, line=False) for t in COLOURS if t in techniques]
