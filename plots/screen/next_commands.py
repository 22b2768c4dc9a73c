"""The three commands that most likely come after a run."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from plots.data import schema
from plots.data.errors import InputError
from plots.data.names import Rung, is_cpu
from plots.data.ratios import Ladder, has_time
from plots.data.reading import Run, load_run
from plots.data.samples import key_of

COMMANDS = 3
PROGRAM = "build/stepladder"
MOST_OTHER_RUNS = 5  # the newest ones are searched for common rows

# Per primitive, the suite that is measured after the layers of the networks, and its question.
NEXT_SUITES = {
    "matmul": ("squares", "rate against matrix size"),
    "convolution": ("alexnet", "the layers of AlexNet"),
    "max_pool": ("squares", "rate against image size"),
    "average_pool": ("squares", "rate against image size"),
    "sgd_update": ("sweep", "rate from L1 to memory"),
    "all_reduce": ("sweep", "bus bandwidth against array size"),
    "reorder": ("layouts", "conversions between memory layouts"),
    "low_precision": ("squares", "rate against matrix size"),
    "layers": ("squares", "rate against image size"),
}


def block(run: Run, found: Sequence[Ladder], width: int) -> str:
    """'Next:' and the commands, each with its purpose if the line is wide enough."""
    chosen = [entry for entry, _ in zip(candidates(run, found), range(COMMANDS))]
    longest = max((len(command) for command, purpose in chosen
                   if len(f"  {command}  # {purpose}") <= width), default=0)
    lines = [f"  {command.ljust(longest)}  # {purpose}" for command, purpose in chosen]
    lines = [line if len(line) <= width else f"  {command}"
             for line, (command, _) in zip(lines, chosen)]
    return "\n".join(["Next:", *lines])


def candidates(run: Run, found: Sequence[Ladder]) -> Iterator[tuple[str, str]]:
    """(command, purpose), the most useful first."""
    folder = shlex.quote(shown_path(run.folder))
    failed = next((row for ladder in found for row in ladder.rows if row["status"] == "failed"),
                  None)
    if failed:
        launcher = f"mpirun -np {failed['ranks']} " if (failed["ranks"] or 1) > 1 else ""
        suite = f" --suite {failed['suite']}" if failed["suite"] else ""
        threads = f" --threads {failed['threads']}" if (failed["threads"] or 1) > 1 else ""
        yield (f"{launcher}{PROGRAM} verify {failed['primitive']} --variant {failed['variant']}"
               f"{suite}{threads}", "the failed rung alone")
    earlier = earlier_run(run)
    if earlier:
        yield (f"make compare OLD={shlex.quote(shown_path(earlier))} NEW={folder}",
               "row by row, against the run before")
    measured = [ladder for ladder in found if ladder.measured]
    for ladder in measured:
        suites = {row["suite"] for row in ladder.measured}
        suite, purpose = NEXT_SUITES.get(ladder.primitive, ("", ""))
        if suite and suite not in suites:
            yield f"make bench PRIMITIVE={ladder.primitive} SUITE={suite}", purpose
            break
    if not run.step:
        yield "make bench", "all primitives and the training steps of three networks"
    if not earlier:
        yield f"make compare OLD={folder} NEW=FOLDER", "after a change and another run"
    missing = sum(is_unavailable(ladder, rung) for ladder in found for rung in ladder.rungs)
    purpose = f", and why {missing} did not run" if missing else ""
    yield f"{PROGRAM} list", f"every rung{purpose}"
    if run.step and any(is_cpu(row["device"]) for row in run.step):
        yield "make peers", "the same training steps in PyTorch"


def is_unavailable(ladder: Ladder, rung: Rung) -> bool:
    """Whether the rung ran on no problem."""
    return all(row["status"] == "unavailable" for row in ladder.rows
               if row["variant"] == rung.name)


def shown_path(folder: Path) -> str:
    """Relative to the working directory where the folder is below it."""
    relative = os.path.relpath(folder)
    return str(folder) if relative.startswith("..") else relative


def earlier_run(run: Run) -> Path | None:
    """The newest earlier run in the same parent folder, on the same machine, with common rows."""
    here = run.environment or {}
    rows = row_names(run)
    others = []
    for path in run.folder.absolute().parent.glob(f"*/{schema.SAMPLES_FILE}"):
        about = loaded(path.parent, "environment").environment or {}
        started = str(about.get("started_at"))
        if (about.get("cpu_model") == here.get("cpu_model")
                and started < str(here.get("started_at"))):
            others.append((started, path.parent))
    for _, folder in sorted(others, reverse=True)[:MOST_OTHER_RUNS]:
        if row_names(loaded(folder, "summary")) & rows:
            return folder
    return None


def loaded(folder: Path, part: str) -> Run:
    """One part of another run, or nothing if it cannot be read."""
    try:
        return load_run(folder, (part,))
    except (InputError, OSError):
        return Run(folder)


def row_names(run: Run) -> set[tuple]:
    return {key_of(row) for row in run.summary or [] if has_time(row)}
