"""A section for each rung: idea, gain, roofline, source, difference, and where it loses.

The builds of one source for several instruction sets share a section. Sources are highlighted once,
and fill what the rest of the page leaves of its limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from plots.data.ceilings import peaks
from plots.data.chain import chain_of, interval, main_resource
from plots.data.names import Rung, resolve_builds_on, split_isa
from plots.data.numbers import MISSING, percent, shown
from plots.data.overview import best_rung, parts_of
from plots.data.ratios import (
    Ladder,
    first_and_last,
    has_time,
    matching,
    mean_ratio,
    problem_key,
    resource_of,
    resources_of,
)
from plots.data.reading import Row, Run, grouped
from plots.page import instructions, sources, svg
from plots.page.first_screen import ladder_svg
from plots.page.svg import Axis, Guide, Series

MOST_LOSSES = 6
# Bytes of HTML around a source or a difference, or of its name where it is left out.
FRAME = 400


class Code:
    """Highlighted files, each once, of at most `budget` bytes of HTML together with their
    differences."""

    def __init__(self, root: Path, budget: int):
        self.root = root
        self.left = budget
        self.shown_in: dict[str, str] = {}  # path: anchor of the section that shows it
        self.cut: list[str] = []

    def file(self, path: str, anchor: str) -> dict:
        if path in self.shown_in:
            return {"path": path, "elsewhere": self.shown_in[path]}
        try:
            text = sources.read(self.root / path)
        except OSError:
            return {"path": path, "missing": "the file is missing in this repository"}
        html, left_out = sources.highlighted(text)
        if not self.fits(html):
            self.cut.append(path)
            return {"path": path, "missing": "left out to keep this page small"}
        self.shown_in[path] = anchor
        if left_out:
            self.cut.append(f"{path} (its last {left_out} lines)")
        return {"path": path, "html": html, "left_out": left_out}

    def fits(self, html: str) -> bool:
        size = len(html.encode())
        if size > self.left:
            return False
        self.left -= size
        return True

    def difference(self, old: str, new: str) -> dict | None:
        if old == new:
            return None
        try:
            rows, left_out = sources.side_by_side(sources.read(self.root / old),
                                                  sources.read(self.root / new))
        except OSError:
            return None
        if not self.fits(rows):
            self.cut.append(f"difference of {new} to {old}")
            return None
        return {"old": old, "new": new, "rows": rows, "left_out": left_out}


def rung_sections(run: Run, found: Sequence[Ladder], root: Path, build: Path) -> list[dict]:
    """Per primitive its sections, without their sources."""
    groups = []
    for ladder in found:
        expected = sources.expected_gains(root, ladder.primitive)
        known = sources.find_sources(root, ladder.primitive)
        families = grouped(ladder.rungs, lambda rung: split_isa(rung.name)[0])
        sections = [section_of(run, ladder, family, rungs, known, expected, root, build)
                    for family, rungs in families.items()]
        chain = chain_of(ladder)
        groups.append({"primitive": ladder.primitive, "sections": sections,
                       "best": best_of(ladder),
                       "ladder": ladder_svg(chain, {}) if chain and len(chain.bars) > 1 else None,
                       "first": chain.bars[0].rung.name if chain else ""})
    return groups


def best_of(ladder: Ladder) -> str:
    """Our fastest rung, in a few words; "" if none was measured."""
    resource = main_resource(ladder)
    found = []
    for _, direction in parts_of(ladder) if resource else []:
        if best := best_rung(ladder, direction, resource):
            gains = [f"{shown(gain)} over the {what}" for gain, what in (
                (best.over_first, "first rung"), (best.over_vendor, "fastest library")) if gain]
            of = f" in {direction}" if direction else ""
            found.append(", ".join([f"the best of ours on {resource.label}{of} is "
                                    f"{best.rung.name}", *gains]))
    return "; ".join(found)


def add_sources(groups: Sequence[dict], root: Path, budget: int) -> list[str]:
    """Sources and differences of all sections, of at most `budget` bytes; returns what was left
    out."""
    sections = [section for group in groups for section in group["sections"]]
    frames = sum(len(section["sources"]) + bool(section["path_below"]) for section in sections)
    code = Code(root, budget - FRAME * frames)
    for section in sections:
        section["files"] = [code.file(path, section["anchor"]) for path in section["sources"]]
        if section["path_below"]:
            section["difference"] = code.difference(section["path_below"], section["path"])
    return code.cut


def ideas(found: Sequence[Ladder], root: Path) -> dict[str, dict[str, str]]:
    """`adds` by primitive and variant."""
    return {ladder.primitive: {rung.name: source.adds for rung in ladder.rungs
                               if (source := sources.find_sources(root, ladder.primitive).get(
                                   split_isa(rung.name)[0]))}
            for ladder in found}


def section_of(run: Run, ladder: Ladder, family: str, rungs: list[Rung],
               known: dict[str, sources.Source],
               expected: dict[str, str], root: Path, build: Path) -> dict[str, Any]:
    """What the page shows of a family, without its files and its difference."""
    measured = [rung for rung in rungs if ladder.of(rung)]
    main = measured[-1] if measured else rungs[-1]
    source = known.get(family)
    base = resolve_builds_on(main, {r.name: r for r in ladder.rungs})
    anchor = f"rung-{ladder.primitive}-"
    section = {
        "primitive": ladder.primitive, "family": family, "anchor": anchor + family,
        "other_anchors": [anchor + rung.name for rung in rungs if rung.name != family],
        "variants": rungs, "technique": main.technique, "adds": source.adds if source else "",
        "builds_on": main.builds_on, "builds_on_anchor": anchor + base if base else "",
        "expected": expected.get(family, ""),
        "gains": [line for rung in measured for line in gain_lines(ladder, rung)],
        "roofline": roofline(run, ladder, main) if measured else None,
        "losses": losses(ladder, main), "path": source.path if source else "",
        "statuses": reasons(ladder, rungs),
        "loop": None,  # a text says why there is none
        "sources": (),  # to be shown: the file of the rung and its own headers
        "path_below": "",  # of the rung that it builds on
        "files": [], "difference": None, "note": ""}
    if source is None:
        section["note"] = (f"No file below kernels/{ladder.primitive} of this repository registers "
                           f"{family}: its source is missing.")
    elif measured:
        section["sources"] = (source.path, *source.includes)
        if main.technique not in ("vendor", "cuda"):
            section["loop"] = instructions.inner_loop(build, root, source.path, source.includes,
                                                      main.name, source.compiled_in)
        if base and (below := known.get(split_isa(base)[0])):
            section["path_below"] = below.path
    else:
        section["note"] = "Not measured in this run, so its source is not shown."
    return section


def gain_lines(ladder: Ladder, rung: Rung) -> list[str]:
    """All directions together and each by itself, on the fewest and the most threads."""
    lines = []
    on = first_and_last(resources_of(ladder.of(rung)))
    directions = [d for d in ladder.directions if ladder.of(rung, d)]
    for resource in on:
        for direction in [None, *(directions if len(directions) > 1 else [])]:
            where = rung, direction, resource
            gain, total = mean_ratio(ladder.gains(*where)), mean_ratio(ladder.speedups(*where))
            lines.append([rung.name, resource.label, direction or "all",
                          shown(gain and gain.value), interval(gain) if gain else MISSING,
                          shown(total and total.value),
                          shown(ladder.column_mean("speedup_vs_vendor", *where)),
                          shown(ladder.column_mean("speedup_vs_vendor_equal", *where)),
                          percent(ladder.column_mean("percent_of_roof", *where)),
                          str(len({problem_key(row) for row in ladder.compared(*where)}))])
    return lines


def losses(ladder: Ladder, rung: Rung) -> list[str]:
    """Problems on which the rung is slower than the one below, or than the fastest library; the
    worst first. Only where the interval of the ratio excludes equality."""
    base = ladder.base_of(rung)
    found: list[tuple[float, str]] = []
    below = ladder.of(base) if base else []

    def place_of(row: Row) -> tuple:
        return problem_key(row), resource_of(row), row["precision"]

    libraries = grouped((row for row in ladder.measured if row["technique"] == "vendor"
                         and rung.technique != "vendor"), place_of)
    for row in ladder.of(rung):
        where = f"{row['direction']} {row['problem']}, {resource_of(row).label}"
        fastest = min(libraries.get(place_of(row), []), key=lambda r: r["median_s"], default=None)
        for rival in (matching(row, below), fastest):
            ratio = ladder.time_ratio(rival, row) if rival else None
            if ratio and ratio.high < 1:
                found.append((ratio.value,
                              f"{where}: {shown(ratio.value)} as fast as {rival['variant']}"))
    found.sort()
    lines = [text for _, text in found[:MOST_LOSSES]]
    if len(found) > MOST_LOSSES:
        lines.append(f"and {len(found) - MOST_LOSSES} more, in the explorer")
    return lines


def reasons(ladder: Ladder, rungs: Sequence[Rung]) -> list[str]:
    names = {rung.name for rung in rungs}
    found = Counter(f"{row['status']}: {row['reason'] or 'no reason given'}" for row in ladder.rows
                    if row["variant"] in names and not has_time(row))
    return [f"{text} ({count} row{'s' if count > 1 else ''})" for text, count in found.items()]


def roofline(run: Run, ladder: Ladder, rung: Rung) -> Markup | None:
    """Every problem of the rung on its most threads, under the peak and the bandwidths."""
    resource = resources_of(ladder.of(rung))[-1]
    rows = [row for row in ladder.of(rung, None, resource) if row["gflops_per_s"] and row["flops"]
            and row["bytes"]]
    names = {"fma_peak"} | {f"{row['precision']}_peak" for row in rows}
    peak = max(peaks(run, "GFLOP/s", resource, name).get("peak", 0.0) for name in names) or None
    bandwidths = peaks(run, "GB/s", resource)
    if not rows or peak is None:
        return None
    points = [(row["flops"] / row["bytes"], row["gflops_per_s"]) for row in rows]
    x = Axis.around("FLOP per byte", [p[0] for p in points] + [0.1, 100.0], True)
    y = Axis.around(f"GFLOP/s, {resource.label}", [p[1] for p in points] + [peak, peak / 300], True)
    guides = [Guide(((max(x.low, peak / max(bandwidths.values(), default=peak / x.low)), peak),
                     (x.high, peak)),
                    f"peak {peak:.0f}")]
    for level in ("L1", "DRAM"):
        if level in bandwidths:
            rate = bandwidths[level]
            start, end = max(x.low, y.low / rate), min(x.high, peak / rate)
            if start < end:
                guides.append(Guide(((start, start * rate), (end, end * rate)), level))
    series = Series(rung.name, svg.technique_colour(rung.technique), points, line=False)
    return svg.chart(f"Roofline of {rung.name}: {len(points)} problems under a peak of {peak:.0f} "
                     "GFLOP/s", [series],
                     x, y, guides, 320, 210)


GAIN_LABELS = ["variant", "on", "direction", "gain", "95 % interval",
               "over first rung", "over library", "at equal arithmetic", "share of roof",
               "problems"]


