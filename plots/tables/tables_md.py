"""tables.md of a run folder: every table of a run as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from plots.data import modes, schema
from plots.data.chain import groups_of
from plots.data.names import Rung, widest_builds
from plots.data.numbers import milliseconds, plural, times
from plots.data.overview import counts
from plots.data.provenance import provenance
from plots.data.ratios import Ladder, Resource, ladders, latest, mean_ratio, resources_of
from plots.data.reading import Row, Run
from plots.data.scaling import thread_speedups
from plots.data.steps import Configuration, baseline, by_network, configurations
from plots.tables import blocks, markdown, mode_tables


def write(run: Run) -> Path:
    path = run.folder / schema.TABLES_FILE
    path.write_text(render(run), encoding="utf-8")
    return path


def render(run: Run) -> str:
    found_ladders = ladders(run)
    parts = [heading(run),
             *titled("Best rungs", blocks.summary_table(found_ladders, by_direction=True))]
    for ladder in found_ladders:
        parts.append(f"## {ladder.primitive}")
        parts += [ladder_section(ladder, direction) for direction in ladder.directions]
        parts += scaling_section(ladder)
    if run.summary is not None:
        rows = latest(run.summary)
        parts += [rows_section(rows), *reason_sections(rows)]
    if run.step is not None:
        parts += [step_section(network, found)
                  for network, found in by_network(configurations(run.step)).items()]
    parts += [*titled("Instruction sets", blocks.instruction_sets_table(run)),
              *titled("Thread sweep", blocks.sweep_table(run)),
              *titled("Inference", blocks.inference_tables(run)),
              *titled("Training modes", mode_tables.markdown_tables(modes.compare(run))),
              *titled("Training", blocks.training_table(run)), files_section(run.folder)]
    return "\n\n".join(parts) + "\n"


def titled(title: str, table: str | None) -> list[str]:
    return [f"## {title}\n\n{table}"] if table else []


def heading(run: Run) -> str:
    lines = ["# Results", f"{provenance(run).line}.",
             (run.environment or {}).get("quiet_sentence") or "",
             "Ratios are geometric means over the problems. The columns ok to skipped count rows "
             "by status; noisy counts the ok rows with a wide confidence interval."]
    return "\n\n".join(line for line in lines if line)


def ladder_section(ladder: Ladder, direction: str) -> str:
    measured = [row for row in ladder.measured if row["direction"] == direction]
    resources = resources_of(measured)
    with_vendor = resources_of(row for row in measured if row["speedup_vs_vendor"])
    labels = ["variant", "technique",
              *(f"over {ladder.baseline}, {r.label}" for r in resources),
              *(f"over vendor, {r.label}" for r in with_vendor), *schema.STATUSES, "noisy"]
    lines = []
    for rung in [rung for group in groups_of(ladder, ladder.rungs) for rung in group.rungs]:
        rows = [row for row in ladder.rows
                if row["variant"] == rung.name and row["direction"] == direction]
        if rows:
            lines.append([f"`{rung.name}`", rung.technique,
                          *(speedup(ladder, rung, direction, r) for r in resources),
                          *(times(ladder.column_mean("speedup_vs_vendor", rung, direction, r))
                            for r in with_vendor), *map(str, counts(rows).values())])
    return ((f"### {direction}\n\n" if direction else "")
            + markdown.table(labels, lines, 2))


def scaling_section(ladder: Ladder) -> list[str]:
    """Of the rungs that were measured on several numbers of threads."""
    found = {rung.name: speedups for rung in widest_builds(ladder.measured_rungs)
             if len(speedups := thread_speedups(ladder, rung, None)) > 1}
    counts_of_threads = sorted({threads for speedups in found.values()
                                for threads in list(speedups)[1:]})
    lines = [[f"`{name}`", *(times(speedups[threads].value if threads in speedups else None)
                             for threads in counts_of_threads),
              str(speedups[max(speedups)].count)] for name, speedups in found.items()]
    labels = ["variant", *(plural(threads, "thread") for threads in counts_of_threads), "problems"]
    return ([f"### {ladder.primitive}, threads\n\nEach variant over itself on the fewest threads, "
             f"all directions.\n\n{markdown.table(labels, lines, 1)}"] if lines else [])


def speedup(ladder: Ladder, rung: Rung, direction: str, resource: Resource) -> str:
    mean = mean_ratio(ladder.speedups(rung, direction, resource))
    return times(mean.value if mean else None)


def rows_section(summary: Sequence[Row]) -> str:
    found = counts(summary)
    parts = [f"{found[status]} {status}" for status in schema.STATUSES]
    return (f"## Rows\n\n{plural(len(summary), 'row')}: {', '.join(parts)}; "
            f"{found['noisy']} of the ok rows noisy.")


def reason_sections(summary: Sequence[Row]) -> list[str]:
    """Why rows have no time, one line for each variant and reason."""
    sections = []
    for status in schema.STATUSES:
        found = Counter((row["primitive"], row["variant"], row["reason"])
                        for row in summary if row["status"] == status != "ok")
        if found:
            lines = [[primitive, f"`{variant}`", str(count),
                      markdown.cell(reason or "no reason given")]
                     for (primitive, variant, reason), count in found.items()]
            sections.append(f"## {status.capitalize()}\n\n"
                            + markdown.table(("primitive", "variant", "rows", "reason"), lines, 4))
    return sections


def step_section(network: str, here: Sequence[Configuration]) -> str:
    phases = sorted({phase for c in here for phase in c.phases},
                    key=lambda phase: (*schema.PHASES, phase).index(phase))
    modes = {c.mode for c in here} != {here[0].mode}
    base = baseline(network, here)
    labels = ["use", *(["mode"] if modes else []), "on", "step", *phases, "plans alone",
              "step / alone", f"over {base.use}"]
    lines = []
    for c in here:
        lines.append([f"`{c.use}`", *([c.mode] if modes else []), c.resource.label,
                      milliseconds(c.total_s), *(milliseconds(c.phase_s(p)) for p in phases),
                      milliseconds(c.predicted_s),
                      times(c.total_s / c.predicted_s if c.predicted_s else None),
                      times(base.total_s / c.total_s)])
    return (f"## Training step of {network}\n\nMilliseconds.\n\n"
            + markdown.table(labels, lines, 3 if modes else 2))


def files_section(folder: Path) -> str:
    lines = [f"- [{name}]({name})" for name in (*schema.RUN_FILES, *schema.INFERENCE_FILES,
                                               *schema.MODE_FILES)
             if (folder / name).exists()]
    charts = sorted((folder / schema.CHARTS_FOLDER).glob("*.svg"))
    if charts:
        lines.append(f"- [{schema.CHARTS_FOLDER}]({schema.CHARTS_FOLDER}): "
                     f"{plural(len(charts), 'chart')} as SVG, PDF and PNG")
    return "\n".join(["## Files", "", *lines])
