"""The results as text, as `make bench` prints them at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from plots import schema
from plots.names import Rung
from plots.numbers import milliseconds, times
from plots.ratios import Ladder, Resource, ladders, latest, mean_ratio, plural, resources_of
from plots.reading import Row, Run
from plots.steps import Configuration, baseline, configurations, networks, thread_sweep

MOST_REASONS = 12


def render(run: Run) -> str:
    blocks = [heading(run)]
    for ladder in ladders(run):
        blocks += [ladder_block(ladder, direction) for direction in ladder.directions]
    if run.summary is not None:
        rows = latest(run.summary)
        blocks += [totals_block(rows), *reason_blocks(rows)]
    if run.step is not None:
        found = configurations(run.step)
        blocks += [step_block(found, network) for network in networks(found)]
        blocks.append(sweep_block(thread_sweep(run.step)))
    blocks.append(written_block(run.folder))
    return "\n\n".join(block for block in blocks if block)


def heading(run: Run) -> str:
    environment = run.environment or {}
    commit = str(environment.get("commit") or "unknown")[:12]
    modified = " (modified)" if environment.get("dirty") else ""
    data = str(environment.get("data") or "unknown").removeprefix("data=")
    lines = [f"{environment.get('cpu_model') or 'unknown machine'}, "
             f"commit {commit}{modified}, data={data}",
             environment.get("quiet_sentence") or ""]
    return "\n".join(line for line in lines if line)


def ladder_block(ladder: Ladder, direction: str) -> str:
    resources = resources_of(row for row in ladder.measured if row["direction"] == direction)
    with_vendor = resources_of(row for row in ladder.measured if row["direction"] == direction
                               and row["speedup_vs_vendor"])
    groups = ["", "", *[f"over {ladder.baseline}"] * len(resources),
              *["over vendor"] * len(with_vendor), *["rows"] * (len(schema.STATUSES) + 1)]
    labels = ["variant", "technique", *(r.label for r in resources),
              *(r.label for r in with_vendor), *schema.STATUSES, "flagged"]
    lines = []
    for rung in ladder.rungs:
        rows = [row for row in ladder.rows
                if row["variant"] == rung.name and row["direction"] == direction]
        if rows:
            lines.append([rung.name, rung.technique,
                          *(speedup(ladder, rung, direction, r) for r in resources),
                          *(times(ladder.column_mean("speedup_vs_vendor", rung, direction, r))
                            for r in with_vendor), *counts(rows)])
    title = " ".join(part for part in (ladder.primitive, direction) if part)
    return f"{title}: geometric means over the problems\n" + columns(groups, labels, lines)


def speedup(ladder: Ladder, rung: Rung, direction: str, resource: Resource) -> str:
    mean = mean_ratio(ladder.speedups(rung, direction, resource))
    return times(mean.value if mean else None)


def is_flagged(row: Row) -> bool:
    """A measured row whose repetitions spread too widely; the program says so in the reason."""
    return row["status"] == "ok" and "noisy" in row["reason"]


def counts(rows: Sequence[Row]) -> list[str]:
    by_status = Counter(row["status"] for row in rows)
    return [*(str(by_status[status]) for status in schema.STATUSES),
            str(sum(is_flagged(row) for row in rows))]


def totals_block(summary: Sequence[Row]) -> str:
    by_status = Counter(row["status"] for row in summary)
    parts = [f"{by_status[status]} {status}" for status in schema.STATUSES]
    return (f"{plural(len(summary), 'row')}: {', '.join(parts)}; "
            f"{sum(map(is_flagged, summary))} of the ok rows flagged")


def reason_blocks(summary: Sequence[Row]) -> list[str]:
    """Why rows have no time, failures first; one line for each variant and reason."""
    blocks = []
    for status in schema.STATUSES:
        found = Counter((row["primitive"], row["variant"], row["reason"])
                        for row in summary if row["status"] == status != "ok")
        if not found:
            continue
        lines = [f"  {primitive} {variant} ({plural(count, 'row')}): {reason or 'no reason given'}"
                 for (primitive, variant, reason), count in found.items()]
        if len(lines) > MOST_REASONS:
            lines[MOST_REASONS:] = [f"  and {len(lines) - MOST_REASONS} more, "
                                    f"see {schema.SUMMARY.file}"]
        title = "FAILED" if status == "failed" else status
        blocks.append("\n".join([f"{title}:", *lines]))
    return blocks


def step_block(found: Sequence[Configuration], network: str) -> str:
    here = [c for c in found if c.network == network]
    phases = sorted({phase for c in here for phase in c.phases},
                    key=lambda phase: (*schema.PHASES, phase).index(phase))
    modes = {c.mode for c in here} != {here[0].mode}
    base = baseline(network, found)
    labels = ["use", *(["mode"] if modes else []), "on", "step", *phases, "alone", "step/alone",
              f"over {base.use}"]
    text_columns = 3 if modes else 2
    lines = []
    for c in here:
        lines.append([c.use, *([c.mode] if modes else []), c.resource.label,
                      milliseconds(c.total_s), *(milliseconds(c.phase_s(p)) for p in phases),
                      milliseconds(c.predicted_s),
                      times(c.total_s / c.predicted_s if c.predicted_s else None),
                      times(base.total_s / c.total_s)])
    return (f"training step of {network}: milliseconds\n"
            + columns([""] * len(labels), labels, lines, text_columns))


def sweep_block(found: Sequence[Configuration]) -> str:
    if not found:
        return ""
    labels = ["network", "use", "operations at once", "threads in each", "step", "gain"]
    first = {}
    lines = []
    for c in sorted(found, key=lambda c: (c.network, c.use, c.operations_at_once, c.resource)):
        base = first.setdefault((c.network, c.use), c.total_s)
        lines.append([c.network, c.use, str(c.operations_at_once), str(c.resource.threads),
                      milliseconds(c.total_s), times(base / c.total_s)])
    return ("thread sweep: milliseconds, threads free to move between the cores\n"
            + columns([""] * len(labels), labels, lines))


def columns(groups: Sequence[str], labels: Sequence[str], lines: Sequence[Sequence[str]],
            text_columns: int = 2) -> str:
    """Aligned columns under their labels; equal neighbouring groups share one heading."""
    widths = [max(len(cell) for cell in column) for column in zip(labels, *lines)]
    starts = {}  # group: first and last column
    for i, group in enumerate(groups):
        if group:
            first, _ = starts.get(group, (i, i))
            starts[group] = (first, i)
    for group, (first, last) in starts.items():
        space = sum(widths[first:last + 1]) + 2 * (last - first)
        widths[first] += max(0, len(group) - space)
    top, at = "", 0
    for i, width in enumerate(widths):
        group = groups[i]
        if group and starts[group][0] == i:
            end = sum(widths[:starts[group][1] + 1]) + 2 * starts[group][1]
            top = top.ljust(at) + group.rjust(end - at)
        at += width + 2
    out = [top.rstrip()] if top else []
    for cells in [labels, *lines]:
        out.append("  ".join(cell.ljust(w) if i < text_columns else cell.rjust(w)
                             for i, (cell, w) in enumerate(zip(cells, widths))).rstrip())
    return "\n".join("  " + line for line in out)


def written_block(folder: Path) -> str:
    paths = [str(folder / name) for name in schema.RUN_FILES if (folder / name).exists()]
    charts = sorted((folder / schema.CHARTS_FOLDER).glob("*.svg"))
    if charts:
        paths.append(f"{folder / schema.CHARTS_FOLDER} "
                     f"({plural(len(charts), 'chart')}: svg, pdf, png)")
    return "\n".join(["written:", *(f"  {path}" for path in paths)])
