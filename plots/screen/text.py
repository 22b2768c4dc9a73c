"""Text in columns, for the last screens of the make targets."""

from __future__ import annotations

from collections.abc import Sequence

WIDTH = 110


def clipped(text: str, width: int) -> str:
    return text if len(text) <= width else text[:width - 1] + "…"


def columns(labels: Sequence[str], lines: Sequence[Sequence[str]], text_columns: int) -> str:
    widths = [max(map(len, column)) for column in zip(labels, *lines)]
    return "\n".join("  " + "  ".join(
        cell.ljust(width) if i < text_columns else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(cells, widths))).rstrip()
        for cells in [labels, *lines])
