"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def replace_file(path: Path, text: str) -> None:
    """Writes all of the new text or keeps the old, even if the disk is full."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
