"""Numbers in the form in which tables and charts show them."""

from __future__ import annotations

import re
from collections.abc import Sequence

MISSING = "–"
DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def number_in(text: str) -> float | None:
    """The number that is all of the text, as the program reads it: float() takes 1_0.5 and spaces
    too."""
    return float(text) if DECIMAL.fullmatch(text) else None


def times(ratio: float | None) -> str:
    """A ratio: 0.0043x, 0.87x, 3.41x, 26.2x, 262x."""
    if ratio is None:
        return MISSING
    if ratio < 0.1:
        return f"{ratio:#.2g}x"
    return f"{ratio:.{0 if ratio >= 100 else 1 if ratio >= 10 else 2}f}x"


def shown(ratio: float | None) -> str:
    """As times(), with the sign that a page shows: 2.0×."""
    return times(ratio).replace("x", "×")


def milliseconds(seconds: float | None) -> str:
    if seconds is None:
        return MISSING
    value = 1000 * seconds
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:.{digits}f}"


def microseconds(seconds: float | None) -> str:
    """0.42, 4.20, 42.0, 420, 42,000"""
    if seconds is None:
        return MISSING
    value = 1e6 * seconds
    return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f}"


def percent(share: float | None) -> str:
    if share is None:
        return MISSING
    return f"{share:.0f} %" if share >= 10 else f"{share:.1f} %"


def number(value: float | None, form: str) -> str:
    """The value in a format of format(), for example '.1f'."""
    return MISSING if value is None else format(value, form)


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def binary_size(count: float) -> str:
    """Bytes: 48 KiB, 15.6 GiB."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1023.5:  # a rounded count may lie just below the next unit
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} GiB"


def with_prefix(value: float) -> str:
    """1,500,000 as 1.5M; numbers below 10,000 without a prefix."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size and value >= 1e4:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def short(value: float) -> str:
    """Two significant digits; all digits before the point."""
    if value >= 10:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def listed(names: Sequence[str]) -> str:
    """a, b and c"""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
