"""Tables in Markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

CELL_BORDER = re.compile(r"(?<!\\)\|")
NARROW = 100  # columns of a README


def table(labels: Sequence[str], rows: Iterable[Sequence[str]], text_columns: int) -> str:
    """The first `text_columns` columns are aligned left, the others right."""
    rules = [":--" if i < text_columns else "--:" for i in range(len(labels))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (labels, rules, *rows))


def cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def cells(line: str) -> list[str]:
    """The cells of a line of a table, as they are written."""
    return [found.strip() for found in CELL_BORDER.split(line.strip())[1:-1]]


def narrow(text: str) -> str:
    """The same text on lines of at most NARROW columns."""
    return "\n\n".join(narrow_table(part) if part.startswith("|")
                       else part if part.startswith("!") else wrapped(part)
                       for part in text.split("\n\n"))


def wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, NARROW, subsequent_indent=indent, break_long_words=False,
                         break_on_hyphens=False)


def narrow_table(text: str) -> str:
    """The columns in as few tables as fit, or a list of the rows where a cell alone is too wide.
    All tables begin with the columns that tell the rows apart."""
    lines = [cells(line) for line in text.splitlines()]
    rows = lines[2:]
    key = next((n for n in range(1, len(lines[0]) + 1)
                if len({tuple(row[:n]) for row in rows}) == len(rows)), 1)
    others = len(lines[0]) - key
    for size in sorted({-(-others // count) for count in range(1, others + 1)}, reverse=True):
        tables = [["| " + " | ".join([*line[:key], *line[start:start + size]]) + " |"
                   for line in lines] for start in range(key, key + others, size)]
        if max(len(line) for table in tables for line in table) <= NARROW:
            return "\n\n".join(map("\n".join, tables))
    return "\n".join(wrapped(f"- {': '.join(row)}", "  ") for row in rows)
