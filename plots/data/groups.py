"""Rows, and other items, by what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def grouped(items: Iterable, key: Callable) -> dict[Any, list]:
    """The items of each key, in their order."""
    found: dict[Any, list] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found
