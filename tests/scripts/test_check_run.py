"""scripts/check_run.py: a whole run passes, and each thing that can be wrong with one is named."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from plots import schema

ROOT = Path(__file__).resolve().parents[2]
PRIMITIVES = [suite.stem for suite in (ROOT / "bench/suites").glob("*.csv")]


def write_rows(path, table, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, table.names)
        writer.writeheader()
        writer.writerows(rows)


def summary_row(primitive, **values):
    return {"primitive": primitive, "variant": "serial", "problem": "mlp", "threads": 1,
            "status": "ok", "verified": "yes", "median_s": 0.5} | values


@pytest.fixture
def run(tmp_path):
    """A run folder with one row of everything."""
    version = {"schema_version": schema.SCHEMA_VERSION}
    (tmp_path / "environment.json").write_text(json.dumps(version))
    ceiling = {"name": "fma", "unit": "gflop/s", "threads": 1, "level": "core", "value": 50}
    (tmp_path / "ceilings.json").write_text(json.dumps(version | {"ceilings": [ceiling]}))
    (tmp_path / "benchmark.json").write_text("{}")
    write_rows(tmp_path / "summary.csv", schema.SUMMARY, map(summary_row, PRIMITIVES))
    write_rows(tmp_path / "samples.csv", schema.SAMPLES, [{"primitive": "matmul", "seconds": 0.5}])
    write_rows(tmp_path / "step.csv", schema.STEP, [{"network": "mlp", "median_s": 0.5}])
    write_rows(tmp_path / "train.csv", schema.TRAIN, [{"step": 1, "loss": 2.3}])
    (tmp_path / "charts").mkdir()
    for suffix in ("svg", "pdf", "png"):
        (tmp_path / f"charts/speedup.{suffix}").write_text("a chart")
    return tmp_path


def check(run):
    return subprocess.run([sys.executable, ROOT / "scripts/check_run.py", run], text=True,
                          capture_output=True, timeout=60)


def test_a_whole_run_passes(run):
    result = check(run)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("name", [*schema.RUN_FILES, "charts/speedup.pdf"])
def test_a_missing_file_is_named(run, name):
    (run / name).unlink()
    result = check(run)
    assert result.returncode == 1
    assert Path(name).stem in result.stderr


def test_another_column_is_named(run):
    text = (run / "step.csv").read_text().replace("median_s", "mean_s")
    (run / "step.csv").write_text(text)
    result = check(run)
    assert result.returncode == 1 and "mean_s" in result.stderr


@pytest.mark.parametrize("values, message", [
    ({"status": "failed", "reason": "3 wrong elements"}, "3 wrong elements"),
    ({"verified": "no"}, "verified"),
    ({"verified": ""}, "verified"),
    ({"median_s": ""}, "median_s"),
    ({"median_s": 0}, "median_s"),
    ({"median_s": "nan"}, "median_s"),
    ({"status": "unavailable", "reason": ""}, "without a reason"),
    ({"status": "fine"}, "unknown status"),
])
def test_a_bad_row_is_named(run, values, message):
    bad = summary_row("matmul", variant="packed", **values)
    write_rows(run / "summary.csv", schema.SUMMARY, [*map(summary_row, PRIMITIVES), bad])
    result = check(run)
    assert result.returncode == 1
    assert "packed" in result.stderr and message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_an_unavailable_row_with_its_reason_is_fine(run):
    absent = summary_row("matmul", status="unavailable", verified="", median_s="", reason="no GPU")
    write_rows(run / "summary.csv", schema.SUMMARY, [*map(summary_row, PRIMITIVES), absent])
    assert check(run).returncode == 0


def test_a_primitive_that_was_not_measured_is_named(run):
    write_rows(run / "summary.csv", schema.SUMMARY, map(summary_row, PRIMITIVES[1:]))
    result = check(run)
    assert result.returncode == 1 and f"no ok row of {PRIMITIVES[0]}" in result.stderr


def test_a_loss_that_is_no_number_is_named(run):
    write_rows(run / "train.csv", schema.TRAIN, [{"step": 1, "loss": "nan"}])
    result = check(run)
    assert result.returncode == 1 and "loss" in result.stderr


def test_every_problem_is_reported_at_once(run):
    (run / "train.csv").unlink()
    (run / "charts/speedup.png").unlink()
    assert len(check(run).stderr.splitlines()) == 2
