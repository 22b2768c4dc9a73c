"""The Markdown that can stand between result markers, by name.

machine            what the run was taken on
summary            per primitive: the best own rung against the first rung and the vendors
directions         the same for each direction apart
steps              the time of a training step per network and configuration
thread-sweep       threads inside an operation against operations at once, milliseconds per step
peers              the same training steps in PyTorch, from the run's folder peers/
training           the last row of every training
ladder-PRIMITIVE   every rung of a primitive: measured gain over the rung below, and in total
chart-NAME         the chart of that name in the run's charts folder
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from plots import schema
from plots.names import Rung
from plots.numbers import binary_size, milliseconds, times
from plots.ratios import Ladder, Mean, Resource, ladders, mean_ratio, resources_of
from plots.reading import Run, read_json, read_table
from plots.steps import Configuration, baseline, configurations, thread_sweep
from plots.trainings import split_trainings

# Makes the block for a file in the given folder; None where the run has nothing for it.
Block = Callable[[Path], str | None]

NOTHING = "–"


def known_blocks(run: Run, primitives: Iterable[str]) -> dict[str, Block]:
    found = {ladder.primitive: ladder for ladder in ladders(run)}
    known: dict[str, Block] = {
        "machine": lambda _: machine(run),
        "summary": lambda _: summary(run, by_direction=False),
        "directions": lambda _: summary(run, by_direction=True),
        "steps": lambda _: steps(run),
        "thread-sweep": lambda _: sweep(run),
        "peers": lambda _: peers(run),
        "training": lambda _: training(run),
    }
    for primitive in sorted({*primitives, *found}):
        ladder = found.get(primitive)
        known[f"ladder-{primitive}"] = lambda _, ladder=ladder: ladder_block(run, ladder)
    charts = run.folder / schema.CHARTS_FOLDER
    for path in sorted(charts.glob("*.svg")):
        known[f"chart-{path.stem}"] = lambda folder, path=path: chart(path, folder)
    return known


def chart(path: Path, folder: Path) -> str:
    link = Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    return f"![{path.stem.replace('-', ' ')}]({link})"


def markdown_table(labels: Sequence[str], rows: Iterable[Sequence[str]], text_columns: int) -> str:
    rules = [":--" if i < text_columns else "--:" for i in range(len(labels))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (labels, rules, *rows))


def source(run: Run) -> str:
    environment = run.environment or {}
    commit = str(environment.get("commit") or "unknown")[:12]
    modified = " (modified)" if environment.get("dirty") else ""
    data = str(environment.get("data") or "unknown").removeprefix("data=")
    return (f"{environment.get('cpu_model') or 'Unknown machine'}; commit {commit}{modified}; "
            f"data: {data}; run `{run.folder.resolve().name}`.")


def machine(run: Run) -> str | None:
    if run.environment is None:
        return None
    environment = run.environment
    memory = environment.get("memory_bytes")
    libraries = environment.get("libraries") or {}
    caches = environment.get("caches")
    if isinstance(caches, dict):
        caches = ", ".join(f"{level} {binary_size(size)}" for level, size in caches.items())
    facts = {
        "CPU": environment.get("cpu_model"),
        "cores": environment.get("cores"),
        "threads available": environment.get("threads_available"),
        "instruction sets": ", ".join(environment.get("isa") or []),
        "caches": caches,
        "memory": binary_size(memory) if memory else None,
        "GPU": environment.get("gpu"),
        "compiler": environment.get("compiler"),
        "flags": environment.get("compiler_flags"),
        "libraries": ", ".join(f"{name} {first_part(libraries[name])}" for name in libraries),
        "counters": environment.get("counters"),
        "noise": environment.get("quiet_sentence"),
    }
    rows = [(name, cell_text(value)) for name, value in facts.items() if value not in (None, "")]
    return f"{source(run)}\n\n" + markdown_table(("", ""), rows, 2)


def first_part(version: object) -> str:
    """Open MPI's version goes on with its package and date."""
    return str(version).partition(",")[0]


def cell_text(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def summary(run: Run, by_direction: bool) -> str | None:
    rows = []
    for ladder in ladders(run):
        for direction in ladder.directions if by_direction else [None]:
            for resource in resources_of(ladder.measured):
                line = best_line(ladder, direction, resource)
                if line:
                    place = [direction] if by_direction else []
                    rows.append([ladder.primitive, *place, resource.label, *line])
    if not rows:
        return None
    labels = ["primitive", *(["direction"] if by_direction else []), "on", "best rung",
              "over first rung", "over vendor", "share of roof", "problems"]
    over = "the problems" if by_direction else "the problems of all directions"
    return (f"{source(run)} Geometric means over {over}.\n\n"
            + markdown_table(labels, rows, len(labels) - 4))


def best_line(ladder: Ladder, direction: str | None, resource: Resource) -> list[str] | None:
    """Of the own rungs measured on the most problems, the one that gains most; those that pack the weights
    beforehand do not count."""
    means = {rung: mean_ratio(ladder.speedups(rung, direction, resource))
             for rung in ladder.measured_rungs
             if rung.technique != "vendor" and not ladder.is_prepacked(rung)}
    means = {rung: mean for rung, mean in means.items() if mean}
    if not means:
        return None
    rung, mean = max(means.items(), key=lambda item: (item[1].count, item[1].value))
    return [f"`{rung.name}`", times(mean.value),
            cell(ladder.column_mean("speedup_vs_vendor", rung, direction, resource)),
            share_of_roof(ladder, rung, direction, resource), str(mean.count)]


def cell(ratio: float | None) -> str:
    return NOTHING if ratio is None else times(ratio)


def gain_cell(mean: Mean | None) -> str:
    return NOTHING if mean is None else times(mean.value)


def share_of_roof(ladder: Ladder, rung: Rung, direction: str | None, resource: Resource) -> str:
    share = ladder.column_mean("percent_of_roof", rung, direction, resource)
    if share is None:
        return NOTHING
    return f"{share:.0f} %" if share >= 10 else f"{share:.1f} %"


def ladder_block(run: Run, ladder: Ladder | None) -> str | None:
    """One table per direction. On several resources: one column of each kind for each."""
    if ladder is None or not ladder.measured:
        return None
    parts = [f"{source(run)} Geometric means over the problems; `gain` is over the rung that a "
             "rung builds on."]
    for direction in ladder.directions:
        on = resources_of(row for row in ladder.measured if row["direction"] == direction)
        if not on:
            continue
        where = [f", {resource.label}" if len(on) > 1 else "" for resource in on]
        labels = ["rung", "technique", "builds on"]
        for kind in ("gain", f"over {ladder.baseline}", "over vendor", "share of roof"):
            labels += [kind + suffix for suffix in where]
        rows = [ladder_line(ladder, rung, direction, on) for rung in ladder.measured_rungs
                if ladder.of(rung, direction)]
        title = f"**{direction}**, " if direction else ""
        unit = on[0].label if len(on) == 1 else ""
        heading = f"{title}{unit}".rstrip(", ")
        parts.append((f"{heading}\n\n" if heading else "")
                     + markdown_table([*labels, "problems"], rows, 3))
    return "\n\n".join(parts)


def ladder_line(ladder: Ladder, rung: Rung, direction: str, on: Sequence[Resource]) -> list[str]:
    base = ladder.base_of(rung)
    builds_on = f"`{base.name}`" if base else NOTHING
    problems = {(row["problem"], row["cache"]) for row in ladder.of(rung, direction)}
    return [f"`{rung.name}`", rung.technique, builds_on,
            *(gain_cell(mean_ratio(ladder.gains(rung, direction, r))) for r in on),
            *(gain_cell(mean_ratio(ladder.speedups(rung, direction, r))) for r in on),
            *(cell(ladder.column_mean("speedup_vs_vendor", rung, direction, r)) for r in on),
            *(share_of_roof(ladder, rung, direction, r) for r in on), str(len(problems))]


def steps(run: Run) -> str | None:
    found = configurations(run.step or [])
    if not found:
        return None
    labels = ("network", "rungs", "on", "ms per step", "forward", "backward", "update",
              "speedup", "measured / predicted")
    rows = []
    for c in found:
        base = baseline(c.network, found)
        ratio = f"{c.total_s / c.predicted_s:.2f}" if c.predicted_s else NOTHING
        mode = "" if c.mode in ("", "single", "ablate") else f", {c.mode}"
        rows.append([c.network, f"`{c.use}`", c.resource.label + mode, milliseconds(c.total_s),
                     *(milliseconds(c.phase_s(phase)) for phase in labels[4:7]),
                     f"{times(base.total_s / c.total_s)} over `{base.use}`", ratio])
    return f"{source(run)}\n\n" + markdown_table(labels, rows, 3)


def sweep(run: Run) -> str | None:
    """Like Table 10 of the survey: a line for each pair of counts, a column for each network."""
    found = thread_sweep(run.step or [])
    if not found:
        return None
    columns = list(dict.fromkeys((c.network, c.use) for c in found))
    pairs = sorted({(c.operations_at_once, c.resource.threads) for c in found})
    times_s = {(c.network, c.use, c.operations_at_once, c.resource.threads): c.total_s
               for c in found}
    rows = []
    for pair in pairs:
        cells = []
        for column in columns:
            here, first = times_s.get((*column, *pair)), times_s.get((*column, *pairs[0]))
            cells.append(NOTHING if here is None else milliseconds(here)
                         + (f" ({times(first / here)})" if first else ""))
        rows.append([str(pair[0]), str(pair[1]), *cells])
    labels = ["operations at once", "threads in each",
              *(f"{network}, `{use}`" for network, use in columns)]
    return (f"{source(run)} Milliseconds per step and gain over the first line; threads were free "
            "to move between the cores.\n\n" + markdown_table(labels, rows, 2))


def peers(run: Run) -> str | None:
    """The fastest mode of PyTorch beside our own best rung and the libraries'."""
    folder = run.folder / "peers"
    step = read_table(folder / "step.csv", schema.STEP, [])
    about = read_json(folder / "environment.json")
    if not step or not about:
        return None
    fastest: dict[tuple[str, Resource, str], Configuration] = {}
    for c in configurations(step):
        key = (c.network, c.resource, c.use)
        fastest[key] = min(c, fastest.get(key, c), key=lambda c: c.total_s)
    rows = []
    for (network, resource, use), peer in fastest.items():
        own = fastest.get((network, resource, "best"))
        if use != "pytorch" or own is None:
            continue
        vendor = fastest.get((network, resource, "vendor"))
        rows.append([network, resource.label, milliseconds(own.total_s),
                     milliseconds(vendor.total_s) if vendor else NOTHING,
                     milliseconds(peer.total_s), peer.mode, times(peer.total_s / own.total_s)])
    labels = ("network", "on", "`best`, ms", "`vendor`, ms", "PyTorch, ms", "its fastest mode",
              "PyTorch / `best`")
    return (f"PyTorch {about['pytorch']}; medians of {about['rounds']} rounds in turns.\n\n"
            + markdown_table(labels, rows, 2))


def training(run: Run) -> str | None:
    trainings = split_trainings(run.train or [])
    if not trainings:
        return None
    rows = []
    for training_rows in trainings:
        last = training_rows[-1]
        accuracy = [row["accuracy"] for row in training_rows if row["accuracy"] is not None]
        rows.append([last["mode"] or "single", number(last["step"], "d"),
                     number(last["seconds"], ".1f"), number(last["samples_per_s"], ".0f"),
                     number(last["loss"], ".3f"),
                     f"{100 * accuracy[-1]:.1f} %" if accuracy else NOTHING])
    labels = ("training", "steps", "seconds", "samples/s", "last loss", "accuracy")
    return f"{source(run)}\n\n" + markdown_table(labels, rows, 1)


def number(value: float | None, form: str) -> str:
    return NOTHING if value is None else format(value, form)
