"""The source files of the rungs: which file registers a rung, highlighted, and compared with
another."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from markupsafe import Markup, escape
from pygments.lexers import CppLexer
from pygments.token import Comment, Keyword, Name, Number, String, Token

from plots.tables import markdown

SUFFIXES = (".cpp", ".hpp", ".cu", ".c")
MOST_LINES = 420        # of one file; the page says how many it leaves out
MOST_DIFF_LINES = 150
CONTEXT = 2             # equal lines around a difference
# Token type: class in the style sheet. The first that contains the token counts.
CLASSES = ((Comment.Preproc, "p"), (Comment.PreprocFile, "p"), (Comment, "c"), (Keyword, "k"),
           (Name.Builtin, "k"), (String, "s"), (Number, "d"))

INFO = re.compile(r"VariantInfo\s+\w+\s*\{(?P<body>[^{}]*)\}", re.S)
FIELD = re.compile(r"\.(?P<name>name|adds)\s*=\s*(?P<text>(?:\"(?:[^\"\\]|\\.)*\"\s*)+)")
BY_COMPILER = {  # folder in the build folder: what it adds, as kernels/common/registry.cpp says it
    "o3": "the same source, vectorized by the compiler alone (-O3)",
    "omp_simd": "the same source, vectorized as its `#pragma omp simd` allow"}
INCLUDE = re.compile(r'^#include "(?P<path>kernels/[^"]+)"', re.M)


@dataclass(frozen=True)
class Source:
    """A rung as its file declares it; paths are relative to the repository."""
    path: str
    adds: str
    # Headers of the rung itself, not those of all kernels.
    includes: tuple[str, ...] = field(default=())
    compiled_in: str = ""  # folder of the build folder with the file that includes it


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


@lru_cache(maxsize=8)
def find_sources(root: Path, primitive: str) -> dict[str, Source]:
    """By family. A file may register several rungs, for example one per library."""
    found: dict[str, Source] = {}
    folder = root / "kernels" / primitive
    for path in sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES and p.is_file()):
        text = read(path)
        for info in INFO.finditer(text):
            fields = {f["name"]: "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', f["text"]))
                      for f in FIELD.finditer(info["body"])}
            if "name" in fields:
                own = tuple(name for name in INCLUDE.findall(text)
                            if name.startswith(f"kernels/{primitive}/")
                            and name.count("/") > 2 and (root / name).is_file())
                name = path.relative_to(root).as_posix()
                found[fields["name"]] = Source(name, fields.get("adds", ""), own)
                if "Technique::serial" in info["body"] and path.suffix == ".cpp":
                    for kind, adds in BY_COMPILER.items():
                        if kind == "o3" or "#pragma omp simd" in text:
                            found[f"{fields['name']}_{kind}"] = Source(name, adds, own,
                                                                       f"by_compiler/{kind}/")
    return found


def without_empty_end(text: str) -> list[str]:
    return text.rstrip("\n").split("\n")


def highlighted(text: str) -> tuple[Markup, int]:
    """The first MOST_LINES lines, and how many more there are."""
    lines = without_empty_end(text)
    left_out = max(0, len(lines) - MOST_LINES)
    out = []
    for kind, value in CppLexer(stripnl=False,
                                ensurenl=False).get_tokens("\n".join(lines[:MOST_LINES])):
        name = next((css for token, css in CLASSES if kind in token), "")
        shown = str(escape(value))
        out.append(f"<b class={name}>{shown}</b>" if name and kind is not Token.Text
                   and value.strip() else shown)
    return Markup("".join(out)), left_out


def side_by_side(old: str, new: str) -> tuple[Markup, int]:
    """Rows of a table with two columns, equal parts shortened; and how many rows are left out."""
    before, after = without_empty_end(old), without_empty_end(new)
    rows = list(diff_rows(before, after))
    left_out = max(0, len(rows) - MOST_DIFF_LINES)
    return Markup("".join(rows[:MOST_DIFF_LINES])), left_out


def diff_rows(before: list[str], after: list[str]) -> Iterator[str]:
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    last = 0
    for group in matcher.get_grouped_opcodes(CONTEXT):
        if group[0][1] > last:
            yield f"<tr class=gap><td colspan=2>… {group[0][1] - last} equal lines</td></tr>"
        for kind, a1, a2, b1, b2 in group:
            for i in range(max(a2 - a1, b2 - b1)):
                left = escape(before[a1 + i]) if a1 + i < a2 else ""
                right = escape(after[b1 + i]) if b1 + i < b2 else ""
                if kind == "equal":
                    yield f"<tr><td>{left}</td><td>{right}</td></tr>"
                else:
                    minus = " class=minus" if a1 + i < a2 else ""
                    plus = " class=plus" if b1 + i < b2 else ""
                    yield f"<tr><td{minus}>{left}</td><td{plus}>{right}</td></tr>"
            last = a2


def expected_gains(root: Path, primitive: str) -> dict[str, str]:
    """The column `expected gain` of the tables of rungs in the README of the primitive, by
    family."""
    try:
        text = read(root / "kernels" / primitive / "README.md")
    except OSError:
        return {}
    found: dict[str, str] = {}
    column = None
    for line in text.splitlines():
        if not line.startswith("|"):
            column = None
            continue
        row = markdown.cells(line)
        if "expected gain" in row and row[0] == "rung":
            column = row.index("expected gain")
        elif column is not None and len(row) > column and row[column].strip("-: "):
            for name in re.findall(r"\[`?([\w]+)`?\]|`(\w+)`", row[0]):
                found.setdefault(name[0] or name[1], row[column])
    return found
