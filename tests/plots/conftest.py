from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import run_folder
from plots.data.ratios import Ladder, ladders
from plots.data.reading import Run, load_run
from tests import columns

Rows = list[list[str]] | None


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A run folder that a test may change."""
    return run_folder.write_run(tmp_path / "run")


@pytest.fixture
def run_of(tmp_path: Path) -> Callable[..., Run]:
    """Makes the run, in tmp_path, with these rows of its tables and these ceilings."""

    def make(summary: Rows = None, samples: Rows = None, *, step: Rows = None,
             ceilings: list[dict] | None = None) -> Run:
        for table, rows in ((columns.SUMMARY, summary), (columns.SAMPLES, samples),
                            (columns.STEP, step)):
            if rows is not None:
                run_folder.write_csv(tmp_path, table, rows)
        if ceilings is not None:
            run_folder.write_json(tmp_path / "ceilings.json", ceilings=ceilings)
        return load_run(tmp_path)

    return make


@pytest.fixture
def ladder_of(run_of: Callable[..., Run]) -> Callable[..., Ladder]:
    return lambda *rows: ladders(run_of(*rows))[0]
