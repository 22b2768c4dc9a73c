"""Rewrites the result blocks of README.md, docs/*.md and kernels/*/README.md from a published run.

A block is enclosed by the lines <!-- results:NAME begin --> and <!-- results:NAME end -->; the
names are in blocks.py. No file is written before all files are read and all blocks are made.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from pathlib import Path

from plots.data.errors import InputError
from plots.data.files import replace_file
from plots.data.reading import Run, read_text
from plots.tables import blocks, markdown

MARKER = re.compile(r"<!--\s*results:(?P<name>[\w.-]+)\s+(?P<edge>begin|end)\s*-->")
LOOKS_LIKE_MARKER = re.compile(r"<!--\s*results:")


@dataclass
class Outcome:
    changed: list[Path] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def rewrite(run: Run, root: Path) -> Outcome:
    """Updates all blocks under `root`; a block without rows in the run is kept."""
    outcome = Outcome()
    known = blocks.known_blocks(run, primitives_of(root))
    new_texts = {}
    for path in documents(root):
        text = read_text(path)
        if text is not None:
            new_text = rewrite_text(text, path, known, outcome.warnings)
            if new_text != text:
                new_texts[path] = new_text
    for path, text in new_texts.items():
        replace_file(path, text)
        outcome.changed.append(path)
    return outcome


def documents(root: Path) -> tuple[Path, ...]:
    return (root / "README.md", *sorted(root.glob("docs/*.md")),
            *sorted(root.glob("kernels/*/README.md")))


def primitives_of(root: Path) -> list[str]:
    """Folders with a contract of the same name, for example matmul/matmul.hpp."""
    return sorted(folder.name for folder in root.glob("kernels/*")
                  if (folder / f"{folder.name}.hpp").exists())


def rewrite_text(text: str, path: Path, known: dict[str, blocks.Block],
                 warnings: list[str]) -> str:
    out = []
    opened: tuple[str, int] | None = None  # name and line of the current block
    kept: list[str] = []                   # its lines in the file
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        marker = MARKER.fullmatch(line.strip())
        where = f"{path}:{number}"
        if marker is None:
            if LOOKS_LIKE_MARKER.match(line.strip()):
                raise InputError(f"{where}: '{line.strip()}' is no marker; expected "
                                 "<!-- results:NAME begin --> or <!-- results:NAME end -->")
            (kept if opened else out).append(line)
            continue
        name, edge = marker["name"], marker["edge"]
        if name not in known:
            raise InputError(f"{where}: no results are named '{name}'; {nearest(name, known)}")
        if edge == "begin":
            if opened:
                raise InputError(f"{where}: '{name}' begins inside '{opened[0]}', which began in "
                                 f"line {opened[1]} and has no end")
            opened, kept = (name, number), []
            out.append(line)
            continue
        if opened is None or opened[0] != name:
            inside = f"inside '{opened[0]}' of line {opened[1]}" if opened else "without a begin"
            raise InputError(f"{where}: '{name}' ends {inside}")
        content = known[name](path.parent)
        if content is None:
            warnings.append(f"{where}: the run has nothing for '{name}'; its block was kept")
            out += kept
        else:
            out.append(f"\n{markdown.narrow(content)}\n\n")
        out.append(line)
        opened = None
    if opened:
        raise InputError(f"{path}:{opened[1]}: '{opened[0]}' begins here and has no end")
    return "".join(out)


def nearest(name: str, known: dict[str, blocks.Block]) -> str:
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        return f"the nearest names are {', '.join(close)}"
    return f"expected one of {', '.join(sorted(known))}"
