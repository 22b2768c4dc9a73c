"""The published runs as a folder for any static web server: index.html and one page for each
run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plots.data import instruction_sets, schema
from plots.data.chain import main_chain, main_resource, main_step, sentence
from plots.data.errors import InputError
from plots.data.files import replace_file
from plots.data.numbers import plural
from plots.data.overview import best_rung, counts, parts_of
from plots.data.provenance import provenance
from plots.data.ratios import ladders, latest
from plots.data.reading import Run, load_run
from plots.page import svg, write

INDEX = "index.html"
LOCAL = "local"  # everyday runs, which are not published


@dataclass
class Outcome:
    index: Path
    runs: int
    warnings: list[str] = field(default_factory=list)


def published_runs(results: Path) -> list[Path]:
    """The folders below `results` that hold a summary or a training, except local/."""
    found = {path.parent for name in (schema.SUMMARY_FILE, f"{schema.SUMMARY_FILE}.gz", "train.csv")
             for path in results.rglob(name)}
    return sorted(folder for folder in found if folder.relative_to(results).parts[:1] != (LOCAL,)
                  and (folder / schema.ENVIRONMENT_FILE).is_file())


def write_site(results: Path, site: Path, root: Path, program: Path) -> Outcome:
    """Every page is made before anything is written. Pages of runs that are gone are removed."""
    if not results.is_dir():
        raise InputError(f"{results}: is not a folder; expected the published runs, one folder "
                         "each")
    if site.exists() and any(site.iterdir()) and not (site / INDEX).is_file():
        raise InputError(f"{site}: has files of its own; expected an empty folder or an earlier "
                         "site")
    folders = published_runs(results)
    if not folders:
        raise InputError(f"{results}: holds no published run; expected folders with "
                         f"{schema.ENVIRONMENT_FILE} and {schema.SUMMARY_FILE} or train.csv")
    pages: dict[Path, str] = {}
    entries, warnings = [], []
    for folder in folders:
        run = load_run(folder)
        html, of_page = write.render(run, None, root, program)
        warnings += run.warnings + of_page
        name = folder.relative_to(results)
        pages[name / write.FILE] = html
        entries.append(entry_of(run, str(name), (name / write.FILE).as_posix()))
    index = write.templates().get_template("site.html").render(
        entries=entries, colours=svg.technique_colours())

    def fill(new: Path) -> int:
        for path, html in pages.items():
            (new / path).parent.mkdir(parents=True, exist_ok=True)
            replace_file(new / path, html)
        replace_file(new / INDEX, index)
        return len(pages)

    site.parent.mkdir(parents=True, exist_ok=True)
    return Outcome(site / INDEX, write.replace_folder(site, fill), warnings)


def entry_of(run: Run, name: str, link: str) -> dict[str, Any]:
    """`name` is the path of the folder below the folder of results."""
    found = ladders(run)
    environment = run.environment or {}
    chain, step = main_chain(found), main_step(run)
    peak = instruction_sets.peak_of_each(run)
    builds = instruction_sets.builds(found, peak)
    return {
        "name": name, "link": link, "date": str(environment.get("started_at") or "")[:10],
        "provenance": provenance(run), "quiet": environment.get("quiet_sentence") or "",
        "cores": plural(environment["cores"], "core") if environment.get("cores") else "",
        "sentence": sentence(chain, step, run.refused_ceilings) if chain or step
        else instruction_sets.sentence(builds, peak) if builds else "",
        "trainings": trainings(run), "statuses": counts(latest(run.summary or [])),
        # The primitive, where it ran, and its best rung.
        "best": [(primitive, resource.label, best) for ladder in found
                 if (resource := main_resource(ladder)) for primitive, direction in parts_of(ladder)
                 if (best := best_rung(ladder, direction, resource))]}


def trainings(run: Run) -> str:
    rows = run.train or []
    networks, modes = ({row[name] for row in rows if row.get(name)} for name in ("network", "mode"))
    named = ", ".join(sorted(networks))
    return f"Trainings of {named} in {plural(len(modes), 'mode')}." if networks else ""
