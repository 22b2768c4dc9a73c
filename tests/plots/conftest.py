from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import run_folder  # noqa: E402  (needs the path above)
from plots.data.ratios import Ladder, ladders  # noqa: E402
from plots.data.reading import load_run  # noqa: E402
from tests import columns  # noqa: E402


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A run folder that a test may change."""
    return run_folder.write_run(tmp_path / "run")


@pytest.fixture
def ladder_of(tmp_path: Path) -> Callable[..., Ladder]:
    """Makes the ladder of the given rows of summary.csv and samples.csv."""

    def make(rows: list[list[str]], samples: list[list[str]] | None = None) -> Ladder:
        run_folder.write_csv(tmp_path, columns.SUMMARY, rows)
        if samples is not None:
            run_folder.write_csv(tmp_path, columns.SAMPLES, samples)
        return ladders(load_run(tmp_path))[0]

    return make
