"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(labels: Sequence[str], rows: Iterable[Sequence[str]], text_columns: int) -> str:
    """The first `text_columns` columns are aligned left, the others right."""
    rules = [":--" if i < text_columns else "--:" for i in range(len(labels))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (labels, rules, *rows))


def cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")
