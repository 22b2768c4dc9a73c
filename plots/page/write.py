"""Writes report.html, figures/ and tables/ into the run folder."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from plots.data import instruction_sets, schema, spread
from plots.data.errors import InputError
from plots.data.files import replace_file
from plots.data.numbers import number, percent, plural, times
from plots.data.provenance import provenance
from plots.data.ratios import ladders, latest
from plots.data.reading import Run, compressed, table_files
from plots.data.steps import configurations
from plots.page import (
    attribution,
    clocks,
    convergence,
    explorer,
    first_screen,
    markup,
    replicas,
    rungs,
    svg,
    swap,
    then_and_now,
    timeline,
    verdicts,
)
from plots.tables import blocks, markdown, tables_md

FILE, FIGURES, TABLES = schema.REPORT_FILE, "figures", "tables"
LIMIT = 2_000_000  # bytes
HERE = Path(__file__).parent


@dataclass
class Outcome:
    page: Path
    size: int
    figures: int
    tables: int
    warnings: list[str] = field(default_factory=list)


def write(run: Run, base: Run | None, root: Path, program: Path) -> Outcome:
    """The page is made in full before anything is written."""
    if base is not None and base.folder.resolve() == run.folder.resolve():
        raise InputError(f"--base {base.folder}: is the run itself; expected an earlier run")
    html, warnings = render(run, base, root, program)
    if len(html.encode()) > LIMIT:
        warnings.append(f"{run.folder / FILE}: has {len(html.encode()) / 1e6:.1f} MB; "
                        f"the limit is {LIMIT / 1e6:.0f} MB")
    figures = write_figures(run)
    count = write_tables(run)
    path = run.folder / FILE
    replace_file(path, html)
    return Outcome(path, len(html.encode()), figures, count, warnings)


def render(run: Run, base: Run | None, root: Path, program: Path) -> tuple[str, list[str]]:
    found = ladders(run)
    rows = latest(run.summary or [])
    comparison = verdicts.compare(run, base, program) if base else None
    groups = rungs.rung_sections(run, found, root, program.parent)
    environment = run.environment or {}
    swap_data = swap.swap_data(run, found, root)
    attributions = attribution.section(run)
    first = first_screen.first_screen(run, found, rungs.ideas(found, root))
    peak = instruction_sets.peak_of_each(run)
    builds = instruction_sets.builds(found, peak)
    clock_sentence, clock_table = clocks.clocks(run, found)
    facts: dict[str, Any] = {
        "run": run.folder.resolve().name,
        "provenance": provenance(run),
        "attributions": attributions,
        "first": first,
        "comparison": comparison,
        "comparison_sentence": verdicts.sentence(comparison) if comparison else "",
        "swap": embedded(swap_data) if swap_data else None,
        "steps": markup.html(blocks.steps(run)),
        "inference": markup.html(blocks.inference(run)),
        "timelines": timeline.section(run),
        "groups": groups, "cut": "",
        "gain_labels": rungs.GAIN_LABELS,
        "explorer": embedded({**explorer.data(rows, comparison.rows if comparison else {}),
                              "peaks": explorer.peaks(run), "bandwidths": explorer.bandwidths(run)})
        if rows else None, "statuses": explorer.status_sentence(rows) if rows else "",
        "without_time": explorer.without_time(rows),
        "failed": [row for row in rows if row["status"] == "failed"],
        "sources": then_and_now.then_and_now(run, root),
        "convergence": convergence.convergence(run),
        "replicas": replicas.replicas(run),
        "clock_sentence": clock_sentence, "clock_table": clock_table,
        "instruction_sets": markup.html(blocks.instruction_sets_text(builds, peak))
        if builds else None,
        "is_of_sets": builds and not (attributions or first["chain"] or first["step"]),
        "of_own_peak": instruction_sets.sentence(builds, peak) if builds else "",
        "machine": markup.html(blocks.machine(run)),
        "quiet": environment.get("quiet_sentence") or "",
        "noise": noise_line(run),
        "spread": spread.of_run(run),
        "ceilings": ceilings_table(run),
        "commands": [shown_command(c) for c in environment.get("commands") or []],
        "colours": svg.technique_colours(),
        "networks": sorted({c.network for c in configurations(run.step or [])}),
    }
    page = templates().get_template("page.html")
    # The sources take what the rest leaves.
    cut = rungs.add_sources(groups, root, LIMIT - len(page.render(facts).encode()))
    if not cut:
        return page.render(facts), []
    facts["cut"] = plural(len(cut), "listing") + " of sources"
    return page.render(facts), [f"{run.folder / FILE}: {facts['cut']} left out or shortened to "
                                f"keep the page small; the first: {cut[0]}"]


def templates() -> jinja2.Environment:
    made = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE / "templates"), autoescape=True,
                              trim_blocks=True,
                              lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    made.filters["inline"] = markup.inline
    made.globals |= {
        "file": lambda name: Markup((HERE / "templates" / name).read_text(encoding="utf-8")),
        "html_table": markup.html_table, "text_on": svg.text_on, "times": times,
        "percent": percent, "failed_lines": explorer.failed_lines}
    return made


def embedded(data: Any) -> Markup:
    """JSON, compressed, as text for <script>: a fifth of its size. Equal data give equal bytes."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    return Markup(base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode())


def shown_command(command: str) -> str:
    """Without the folder in which the program was."""
    head, _, rest = command.partition(" ")
    return f"build/stepladder {rest}" if head.endswith("/stepladder") else command


def noise_line(run: Run) -> str:
    noise = (run.environment or {}).get("noise") or {}
    parts = []
    if noise.get("repetitions"):
        parts.append(f"{noise['disturbed']} of {noise['repetitions']} repetitions were disturbed")
    visits = [row["visit"] for row in run.samples or [] if row.get("visit") is not None]
    if visits:
        parts.append("problems were visited up to "
                     f"{max(visits) + 1 if min(visits) == 0 else max(visits)} times")
    marked = sum(bool(row.get("marked")) for row in latest(run.summary or []))
    if run.summary and "marked" in run.summary[0]:
        parts.append(f"{marked} rows are marked disturbed")
    return "; ".join(parts)


def ceilings_table(run: Run) -> Markup | None:
    threads = sorted({c["threads"] for c in run.ceilings or []})
    lines: dict[tuple[str, str, str], dict[int, float]] = {}
    for c in run.ceilings or []:
        lines.setdefault((c["name"], c["level"], c["unit"]), {})[c["threads"]] = c["value"]
    if not lines:
        return None
    return markup.html_table(["ceiling", "level", "unit",
                              *(f"{t} thread{'s' if t > 1 else ''}" for t in threads)],
                             [[*key, *(number(values.get(t), ".4g") for t in threads)]
                              for key, values in lines.items()], 3)


# --- figures and tables --------------------------------------------------------------------------


def write_figures(run: Run) -> int:
    """Copies of the charts, which are drawn first if they are older than the results."""
    seconds_of_a_checkout = 10.0  # git writes the files of a published run in any order
    drawn = run.folder / schema.CHARTS_FOLDER
    newest = max((path.stat().st_mtime for table in table_files(run.folder).values()
                  for path in (table, compressed(table)) if path.exists()), default=0.0)
    svgs = list(drawn.glob("*.svg"))
    if not svgs or max(path.stat().st_mtime for path in svgs) < newest - seconds_of_a_checkout:
        from plots.charts import draw

        draw.write_all(run)

    def copy(folder: Path) -> int:
        found = sorted(path for path in drawn.glob("*") if path.suffix in (".svg", ".pdf", ".png"))
        for path in found:
            shutil.copyfile(path, folder / path.name)
        return len({path.stem for path in found})

    return replace_folder(run.folder / FIGURES, copy)


def write_tables(run: Run) -> int:
    """Every table of tables.md as LaTeX with booktabs, CSV and Markdown."""
    found = markup.tables_of(tables_md.render(run))

    def make(folder: Path) -> int:
        used: dict[str, int] = {}
        for table in found:
            name = file_name(table.title)
            used[name] = used.get(name, 0) + 1
            if used[name] > 1:
                name += f"-{used[name]}"
            (folder / f"{name}.tex").write_text(latex(table), encoding="utf-8")
            (folder / f"{name}.csv").write_text(csv_text(table), encoding="utf-8")
            (folder / f"{name}.md").write_text(markdown_text(table), encoding="utf-8")
        return len(found)

    return replace_folder(run.folder / TABLES, make)


def replace_folder(path: Path, fill: Callable[[Path], int]) -> int:
    """The folder has all its files or is as it was."""
    new = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    new.chmod(0o755)
    old = path.with_name(f".{path.name}.old")
    try:
        count = fill(new)
        if path.exists():
            shutil.rmtree(old, ignore_errors=True)
            os.replace(path, old)
        os.replace(new, path)
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
    return count


def file_name(title: str) -> str:
    words = "".join(c if c.isalnum() else " " for c in title.lower()).split()
    return "-".join(words) or "table"


LATEX = {"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
         "{": r"\{",
         "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--",
         "×": r"$\times$"}


def latex_cell(text: str) -> str:
    parts = text.split("`")
    escaped = ["".join(LATEX.get(c, c) for c in part) for part in parts]
    return "".join(rf"\texttt{{{part}}}" if i % 2 else part for i, part in enumerate(escaped))


def latex(table: markup.Table) -> str:
    columns = "".join("l" if i < table.text_columns else "r" for i in range(len(table.labels)))
    line = " & ".join
    body = [line(map(latex_cell, row)) + r" \\" for row in table.rows]
    return "\n".join([f"% {table.title}; needs \\usepackage{{booktabs}}",
                      rf"\begin{{tabular}}{{{columns}}}",
                      r"\toprule", line(map(latex_cell, table.labels)) + r" \\", r"\midrule", *body,
                      r"\bottomrule", r"\end{tabular}", ""])


def csv_text(table: markup.Table) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.labels)
    writer.writerows([[cell.replace("`", "") for cell in row] for row in table.rows])
    return text.getvalue()


def markdown_text(table: markup.Table) -> str:
    rows = [[markdown.cell(cell) for cell in row] for row in table.rows]
    return f"# {table.title}\n\n{markdown.table(table.labels, rows, table.text_columns)}\n"

