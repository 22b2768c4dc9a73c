"""One training step as a picture: operations over time by rank and lane, from trace.json."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from plots.data import schema
from plots.data.errors import InputError
from plots.data.numbers import milliseconds
from plots.data.reading import Run, grouped, read_text
from plots.page import svg

LINE = 26  # pixels
COLOURS = {"forward": "#0072B2", "backward": "#C94F00", "update": "#A0529B",
           "all_reduce": "#E69F00", "other": "#9A9A9A"}
LETTER, NARROW_LETTER = 0.75, 2.1  # percent of a wide and a narrow screen that a letter takes


class Operation(NamedTuple):
    name: str  # layer and phase
    phase: str
    rung: str
    start_us: float
    end_us: float


@dataclass
class Step:
    """Of one configuration; `lanes` by rank and operation at once."""
    network: str
    use: str
    mode: str
    place: str
    ranks: int
    lanes: dict[tuple[int, int], list[Operation]] = field(default_factory=dict)

    @property
    def end_us(self) -> float:
        return max((o.end_us for lane in self.lanes.values() for o in lane), default=0.0)

    @property
    def idle(self) -> float:
        """The share of the time of its lanes in which no operation runs."""
        busy = sum(o.end_us - o.start_us for lane in self.lanes.values() for o in lane)
        whole = self.end_us * len(self.lanes)
        return max(0.0, 1 - busy / whole) if whole else 0.0

    @property
    def label(self) -> str:
        parts = [self.use, f"{self.ranks} ranks" if self.ranks > 1 else "", self.place,
                 "" if self.mode in ("single", "synchronous") else self.mode]
        return ", ".join(part for part in parts if part)

    @property
    def kind(self) -> tuple[str, bool, bool]:
        """The fastest of each kind is drawn."""
        return self.use.split(",")[0], self.ranks > 1, self.mode.startswith("inter")


def steps(path: Path) -> list[Step]:
    text = read_text(path)
    if text is None:
        return []
    try:
        return parsed(json.loads(text)["traceEvents"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: expected the trace of `stepladder step`; "
                         f"{type(error).__name__}: {error}") from None


def parsed(events: Iterable[dict]) -> list[Step]:
    found: dict[int, tuple[Step, int]] = {}  # by process: its step and rank
    whole: list[Step] = []
    for event in events:
        if event["ph"] == "M":
            about = event["args"]
            if about["rank"] == 0:
                whole.append(Step(about["network"], about["use"], about["mode"], about["place"],
                                  about["ranks"]))
            found[event["pid"]] = whole[-1], about["rank"]
        else:
            step, rank = found[event["pid"]]
            step.lanes.setdefault((rank, event["tid"]), []).append(
                Operation(event["name"], event["cat"], event["args"]["rung"], event["ts"],
                          event["ts"] + event["dur"]))
    return whole


def chosen(found: Iterable[Step]) -> list[Step]:
    """The fastest of the best rungs, of the libraries, over ranks, and with operations at once."""
    wanted = [step for step in found if step.mode != "ablate"
              and (step.kind[0] in ("best", "vendor") or step.kind[2])]
    fastest = [min(alike, key=lambda step: step.end_us)
               for alike in grouped(wanted, lambda step: step.kind).values()]
    return sorted(fastest, key=lambda step: step.end_us)


def bar(operation: Operation, y: int, whole_us: float) -> Markup:
    x, width = (100 * us / whole_us for us in (operation.start_us,
                                               operation.end_us - operation.start_us))
    layer = operation.name.rsplit(" ", 1)[0]
    text = Markup("")
    if len(layer) * LETTER < width:
        text = Markup('<text class="in{}" x="{:.2f}%" y="{}" text-anchor="middle">{}'
                      '</text>').format(
            "" if len(layer) * NARROW_LETTER < width else " more", x + width / 2, y + 14, layer)
    colour = COLOURS.get(operation.phase, COLOURS["other"])
    return Markup('<g {}><title>{}: {} ms, {}</title><rect class="bar" x="{:.2f}%" y="{}" '
                  'width="{:.2f}%" height="20"/>{}</g>').format(
        svg.colour_attributes(colour), operation.name, milliseconds(
            (operation.end_us - operation.start_us) / 1e6), operation.rung, x, y, width, text)


def picture(found: list[Step]) -> Markup:
    """Of the steps of one network, on one axis."""
    whole_us = max(step.end_us for step in found) * 1.001
    spoken = "; ".join(f"{step.label}: {milliseconds(step.end_us / 1e6)} ms, "
                       f"{100 * step.idle:.0f} % waiting" for step in found)
    body: list[Markup] = []
    y = 0
    for step in found:
        rungs, comma, replaced = step.use.partition(",")
        body.append(Markup('<text class="name" x="0" y="{}">{}<tspan class="more">{}</tspan>{}: '
                           '{} ms<tspan class="more">, {:.0f} % waiting</tspan></text>').format(
            y + 16, rungs, comma + replaced, step.label.removeprefix(step.use),
            milliseconds(step.end_us / 1e6), 100 * step.idle))
        y += LINE
        for _, lane in sorted(step.lanes.items()):
            body.append(Markup('<line class="grid" x1="0" x2="100%" y1="{0}" y2="{0}"/>').format(
                y + 20))
            body += [bar(operation, y, whole_us) for operation in lane]
            y += LINE
        y += 6
    return Markup('<svg class="timeline" width="100%" height="{}" role="img" aria-label="{}">{}'
                  '</svg>').format(y, f"Operations over time: {spoken}.", Markup("").join(body))


def section(run: Run) -> list[dict]:
    """Of each network, its name, picture and the phases in it."""
    found = []
    every = steps(run.folder / schema.TRACE_FILE)
    for network, all_steps in grouped(every, lambda step: step.network).items():
        if drawn := [step for step in chosen(all_steps) if step.lanes]:
            present = {o.phase for step in drawn for lane in step.lanes.values() for o in lane}
            found.append({"network": network, "picture": picture(drawn),
                          "phases": [(phase, svg.colour_attributes(colour))
                                     for phase, colour in COLOURS.items() if phase in present]})
    return found
