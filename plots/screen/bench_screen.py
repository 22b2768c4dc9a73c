"""The last screen of `make bench`: the main results, failures and next commands of a run.

At most MOST_LINES lines of WIDTH columns; tables.md has everything else. Only a long path can make
a line wider.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from plots.data import attribution, chain, schema
from plots.data.numbers import MISSING, milliseconds, percent, plural, short, times
from plots.data.overview import (
    BestRung,
    StepComparison,
    best_rung,
    counts,
    parts_of,
    step_comparisons,
)
from plots.data.provenance import provenance
from plots.data.ratios import Ladder, Resource, first_and_last, ladders, latest, resources_of
from plots.data.reading import Row, Run
from plots.data.steps import Configuration, configurations
from plots.screen import next_commands
from plots.screen.next_commands import shown_path
from plots.screen.text import WIDTH, clipped, columns

MOST_LINES = 46
MOST_RUNGS = 12
MOST_STEPS = 6
MOST_FAILED = 3
MOST_REASONS = 3   # why rows are unavailable
MOST_LEAD = 4      # lines of the first sentence
TOO_NOISY = 0.5    # of the measured rows: a warning comes first
BEYOND_ROOF = 105  # percent of the roof that need an explanation
LONGEST_NETWORK = 16  # characters; longer names are clipped
LONGEST_RESOURCE = 20
LONGEST_RUNG = 27

# Below the rungs, where a cell of the column ends with the sign.
NOTES = ((5, ")", "  (…): rung and library without Winograd and FFT"),
         (6, "*", "  *: beyond the measured roof: Winograd and FFT compute less than it counts; "
                  "what stays in caches beats it"))

# The first chart to look at: the first of these that was drawn, and the question that it answers.
FIRST_CHARTS = {"ladder-matmul": "speedup of each rung", "ladder-*": "speedup of each rung",
                "step-*": "time of a step by phase and layer", "loss": "loss against time"}


def render(run: Run) -> str:
    found = ladders(run)
    blocks = [warning(run), lead(run, found), heading(run), rungs_block(found),
              steps_block(configurations(run.step or []))]
    if run.summary is not None:
        blocks.append(rows_block(latest(run.summary), shown_path(run.folder)))
    blocks += [files_block(run.folder), next_commands.block(run, found, WIDTH)]
    return "\n\n".join(block for block in blocks if block)


def warning(run: Run) -> str:
    found = counts(latest(run.summary or []))
    if not found["ok"] or found["noisy"] < TOO_NOISY * found["ok"]:
        return ""
    return wrapped(f"WARNING: {found['noisy']} of {found['ok']} measured rows are noisy, so their "
                   "times may be too long. Stop what else runs on this machine, and measure again "
                   "before you compare.", 2)


def lead(run: Run, found: Sequence[Ladder]) -> str:
    """The sentence with which the page begins; nothing if it has none to say."""
    if described := attribution.attributions(run):
        return wrapped(attribution.sentence(described[0]), MOST_LEAD)
    main, step = chain.main_chain(found), chain.main_step(run)
    if not main and not step:
        return ""
    return wrapped(chain.sentence(main, step, run.refused_ceilings).striptags(), MOST_LEAD)


def wrapped(text: str, lines: int) -> str:
    return "\n".join(textwrap.wrap(text, WIDTH - 2, max_lines=lines, placeholder=" …"))


def heading(run: Run) -> str:
    sentence = (run.environment or {}).get("quiet_sentence") or ""
    return "\n".join([clipped(provenance(run).line, WIDTH),
                      *([wrapped(sentence, 1)] if sentence else [])])


def rungs_block(found: Sequence[Ladder]) -> str:
    """The best rung of our own per primitive, on the fewest and the most threads and ranks."""
    chosen = [(ladder, first_and_last_ranks(resources_of(ladder.measured))) for ladder in found]
    lines = rung_lines(chosen)
    if len(lines) > MOST_RUNGS:
        lines = rung_lines([(ladder, most_of_each_device(on)) for ladder, on in chosen])
    if not lines:
        return ""
    labels = ("primitive", "on", "rung", "rate", "speedup", "over vendor", "of roof", "n")
    shown = fitted(labels, limited(lines, MOST_RUNGS))
    notes = [note for column, sign, note in NOTES if any(line[column].endswith(sign)
                                                         for line in shown)]
    return "\n".join(["Our best rung, geometric means of n problems; speedup: over the first rung; "
                      "vendor: the fastest library", columns(labels, shown, 3), *notes])


def fitted(labels: Sequence[str], lines: list[list[str]]) -> list[list[str]]:
    """With names of rungs as short as the width of the screen needs."""
    excess = max(map(len, columns(labels, lines, 3).splitlines())) - WIDTH
    most = max(len(line[2]) for line in lines) - max(excess, 0)
    return [[*line[:2], clipped(line[2], most), *line[3:]] for line in lines]


def rung_lines(chosen: Sequence[tuple[Ladder, list[Resource]]]) -> list[list[str]]:
    found = [(name, resource, best_rung(ladder, direction, resource)) for ladder, on in chosen
             for name, direction in parts_of(ladder) for resource in on]
    return [rung_line(name, resource, best) for name, resource, best in found if best]


def rung_line(primitive: str, resource: Resource, best: BestRung) -> list[str]:
    equal = ("" if best.over_vendor_equal in (None, best.over_vendor)
             else f" ({gain(best.over_vendor_equal)})")
    rate, unit = best.rate
    return [primitive, clipped(resource.label, LONGEST_RESOURCE), best.rung.name,
            f"{short(rate)} {unit}" if rate else MISSING, times(best.over_first),
            gain(best.over_vendor) + equal, of_roof(best.percent_of_roof), str(best.problems)]


def gain(ratio: float | None) -> str:
    """Over a library; what is slower by more than a rounded percent is called so."""
    return f"slower: {times(ratio)}" if ratio is not None and ratio < 0.995 else times(ratio)


def of_roof(share: float | None) -> str:
    return percent(share) + ("*" if share is not None and share > BEYOND_ROOF else "")


def first_and_last_ranks(resources: Sequence[Resource]) -> list[Resource]:
    """The fewest and the most threads, and the fewest and the most ranks above one."""
    chosen = first_and_last(resources)
    several = sorted({resource.ranks for resource in chosen if resource.ranks > 1})
    return [r for r in chosen if r.ranks == 1 or r.ranks in (several[0], several[-1])]


def most_of_each_device(resources: Sequence[Resource]) -> list[Resource]:
    """The most threads of one process; where there is none, the most ranks."""
    ordered = sorted(resources, key=lambda resource: (resource.ranks == 1, resource))
    return list({resource.device: resource for resource in ordered}.values())


def steps_block(found: Sequence[Configuration]) -> str:
    """Our step beside the vendors' per network, on as many resources as fit."""
    chosen = step_comparisons(found)
    if not chosen:
        return ""
    if len(chosen) > MOST_STEPS:
        chosen = fastest_of_each_device(chosen)
    labels = ("network", "on", "rungs", "ours", "vendor", "vendor / ours", "speedup")
    return ("Training step, milliseconds (best: our fastest rung for each layer)\n"
            + columns(labels, limited([step_line(c) for c in chosen], MOST_STEPS), 3))


def fastest_of_each_device(found: Sequence[StepComparison]) -> list[StepComparison]:
    """Of each network, where the libraries' step was measured too if it was anywhere."""
    fastest: dict[tuple[str, str], StepComparison] = {}
    for c in sorted(found, key=lambda c: (c.vendor is None, c.own.total_s)):
        fastest.setdefault((c.own.network, c.own.resource.device), c)
    return [c for c in found if fastest[c.own.network, c.own.resource.device] is c]


def step_line(comparison: StepComparison) -> list[str]:
    own, vendor, first = comparison
    speedup = f"{times(first.total_s / own.total_s)} over {first.use}" if first else times(None)
    return [clipped(own.network, LONGEST_NETWORK), clipped(own.resource.label, LONGEST_RESOURCE),
            clipped(own.use, LONGEST_RUNG), milliseconds(own.total_s),
            milliseconds(vendor.total_s if vendor else None),
            gain(vendor.total_s / own.total_s if vendor else None), speedup]


def limited(lines: list[list[str]], most: int) -> list[list[str]]:
    """If there are more lines, the last one is their number."""
    if len(lines) <= most:
        return lines
    return [*lines[:most - 1], [f"{len(lines) - most + 1} more", *[""] * (len(lines[0]) - 1)]]


def rows_block(summary: Sequence[Row], folder: str) -> str:
    found = counts(summary)
    parts = [f"{found['ok']} ok ({found['noisy']} noisy)",
             *(f"{found[status]} {status}" for status in schema.STATUSES[1:] if found[status])]
    lines = [f"{plural(len(summary), 'row')}: {', '.join(parts)}"]
    reasons = Counter(row["reason"] or "no reason given" for row in summary
                      if row["status"] == "unavailable").most_common()
    why = [f"{count} ({reason})" for reason, count in reasons[:MOST_REASONS]]
    if others := reasons[MOST_REASONS:]:
        why.append(f"{sum(count for _, count in others)} ({plural(len(others), 'other reason')})")
    if why:
        lines.append(textwrap.indent(wrapped(f"unavailable: {', '.join(why)}", 3), "  "))
    failed = [row for row in summary if row["status"] == "failed"]
    for row in failed[:MOST_FAILED]:
        name = " ".join(row[key] for key in ("primitive", "direction", "variant", "problem"))
        reason = row["reason"] or "no reason given"
        lines.append(clipped(f"  FAILED {name}: {reason}".replace("\n", " "), WIDTH))
    if len(failed) > MOST_FAILED:
        lines.append(f"  {len(failed) - MOST_FAILED} more failed rows: "
                     f"{folder}/{schema.SUMMARY_FILE}")
    return "\n".join(lines)


def files_block(folder: Path) -> str:
    shown = shown_path(folder)
    charts = list((folder / schema.CHARTS_FOLDER).glob("*.svg"))
    lines = []
    if (folder / schema.REPORT_FILE).exists():
        lines.append(f"Report: {shown}/{schema.REPORT_FILE}: open it in a browser")
    if charts:
        line = f"Charts: {shown}/{schema.CHARTS_FOLDER}"
        first, question = first_chart(folder / schema.CHARTS_FOLDER)
        hint = f" ({len(charts)})" + (f"; start with {first}: {question}" if first else "")
        lines.append(line + hint if len(line + hint) <= WIDTH else line)
    if (folder / schema.TABLES_FILE).exists():
        lines.append(f"Tables: {shown}/{schema.TABLES_FILE}")
    return "\n".join(lines)


def first_chart(folder: Path) -> tuple[str, str]:
    for pattern, question in FIRST_CHARTS.items():
        for path in sorted(folder.glob(f"{pattern}.svg")):
            return path.name, question
    return "", ""
