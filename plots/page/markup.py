"""The Markdown that plots/ writes as HTML: paragraphs, bold lines, `code`, headings and tables."""

from __future__ import annotations

import re
from typing import NamedTuple

from markupsafe import Markup, escape

from plots.tables import markdown


class Table(NamedTuple):
    title: str  # the headings above it, joined by commas
    labels: list[str]
    rows: list[list[str]]
    text_columns: int  # aligned left; the others right


def cells(line: str) -> list[str]:
    return [cell.replace("\\|", "|") for cell in markdown.cells(line)]


def tables_of(text: str) -> list[Table]:
    """All tables of a text with the headings above them."""
    found: list[Table] = []
    headings: dict[int, str] = {}
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if heading := re.match(r"(#+) (.*)", line):
            level = len(heading[1])
            headings = {k: v for k, v in headings.items() if k < level} | {level: heading[2]}
        elif re.fullmatch(r"\|( (:--|--:) \|)+", line):
            body = []
            for row in lines[number + 1:]:
                if not row.startswith("|"):
                    break
                body.append(cells(row))
            title = ", ".join(v for k, v in sorted(headings.items()) if k > 1)
            left = sum(cell == ":--" for cell in cells(line))
            found.append(Table(title, cells(lines[number - 1]), body, left))
    return found


def inline(text: str) -> Markup:
    """`code` and **bold**."""
    parts = re.split(r"`([^`]*)`", text)
    out = "".join(f"<code>{escape(part)}</code>" if i % 2 else re.sub(
        r"\*\*(.+?)\*\*", r"<strong>\1</strong>", str(escape(part)))
                  for i, part in enumerate(parts))
    return Markup(out)


def html_table(labels: list[str], rows: list[list[str]], text_columns: int,
               caption: str = "") -> Markup:
    """The first `text_columns` columns are aligned left. The first cell of a row is its header."""
    def row(values: list[str], tag: str) -> str:
        made = []
        for i, value in enumerate(values):
            name = "th" if tag == "th" or i == 0 else "td"
            scope = ' scope="col"' if tag == "th" else ' scope="row"' if i == 0 else ""
            number = "" if i < text_columns else ' class="n"'
            made.append(f"<{name}{scope}{number}>{inline(value)}</{name}>")
        return f"<tr>{''.join(made)}</tr>"

    head = f"<caption>{escape(caption)}</caption>" if caption else ""
    body = "".join(row(r, "td") for r in rows)
    return Markup('<div class="scroll" tabindex="0" role="region" '
                  f'aria-label="{escape(caption or "table")}"><table>{head}'
                  f'<thead>{row(labels, "th")}</thead><tbody>{body}</tbody></table></div>')


def html(text: str | None) -> Markup | None:
    if not text:
        return None
    out = []
    for block in text.split("\n\n"):
        found = tables_of(block)
        if found:
            out.append(html_table(found[0].labels, found[0].rows, found[0].text_columns))
        elif heading := re.match(r"#+ (.*)", block):
            out.append(Markup("<h4>{}</h4>").format(inline(heading[1])))
        elif block.strip():
            out.append(Markup("<p>{}</p>").format(inline(block)))
    return Markup("\n").join(out)
