"""Numbers as people read them."""

from __future__ import annotations

MISSING = "-"


def times(ratio: float | None) -> str:
    """A ratio as people read it: 0.0043x, 0.87x, 3.41x, 26.2x, 262x."""
    if ratio is None:
        return MISSING
    if ratio < 0.1:
        return f"{ratio:#.2g}x"
    return f"{ratio:.{0 if ratio >= 100 else 1 if ratio >= 10 else 2}f}x"


def milliseconds(seconds: float | None) -> str:
    if seconds is None:
        return MISSING
    value = 1000 * seconds
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:.{digits}f}"


def binary_size(count: float) -> str:
    """Bytes: 48 KiB, 15.6 GiB."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} GiB"


def with_prefix(number: float) -> str:
    """1,500,000 as 1.5M; numbers below 10,000 as they are."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size and number >= 1e4:
            return f"{number / size:g}{letter}"
    return f"{number:g}"


def short(number: float) -> str:
    """Two significant digits; all digits before the point."""
    if number >= 10:
        return f"{number:.0f}"
    return f"{number:.1f}" if number >= 1 else f"{number:.2f}"
