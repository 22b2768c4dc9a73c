"""scripts/check_run.py: a complete run passes, and every possible problem is named."""

import json
import sys
from pathlib import Path

import pytest

from plots.data import schema
from tests import columns
from tests.commands import ROOT, changing, execute, write_csv

PRIMITIVES = [suite.stem for suite in (ROOT / "bench/suites").glob("*.csv")]


def write_rows(path, table, rows):
    """The CSV file, and beside summary.csv and step.csv the same as JSON."""
    rows = list(rows)
    write_csv(path, rows, table.names)
    if path.stem in ("summary", "step"):
        path.with_suffix(".json").write_text(json.dumps(
            {"schema_version": schema.SCHEMA_VERSION, "columns": table.names,
             "rows": [{name: row.get(name) for name in table.names} for row in rows]}))


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
    write_rows(tmp_path / "summary.csv", columns.SUMMARY, map(summary_row, PRIMITIVES))
    write_rows(tmp_path / "samples.csv", columns.SAMPLES, [{"primitive": "matmul", "seconds": 0.5}])
    write_rows(tmp_path / "step.csv", columns.STEP, [{"network": "mlp", "median_s": 0.5}])
    write_rows(tmp_path / "train.csv", columns.TRAIN, [{"step": 1, "loss": 2.3}])
    (tmp_path / "columns.json").write_text(columns.JSON)
    about = {"network": "mlp", "use": "best", "mode": "single", "place": "1 thread", "rank": 0,
             "ranks": 1}
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": [
        {"ph": "M", "pid": 0, "args": about},
        {"ph": "X", "pid": 0, "tid": 0, "name": "fc1 forward", "cat": "forward", "ts": 0, "dur": 1,
         "args": {"rung": "simd"}}]}))
    (tmp_path / "tables.md").write_text("# Results\n\n| a |\n| --: |\n| 1 |\n")
    (tmp_path / "report.html").write_text("<!doctype html>\n</html>")
    (tmp_path / "charts").mkdir()
    for suffix in ("svg", "pdf", "png"):
        (tmp_path / f"charts/speedup.{suffix}").write_text("a chart")
    return tmp_path


def check(run, **expected):
    return execute(sys.executable, ROOT / "scripts/check_run.py", run, **expected)


def test_a_whole_run_passes(run):
    check(run, lines=0)


@pytest.mark.parametrize("name", dict.fromkeys([
    *schema.RUN_FILES, "summary.json", "step.json", "columns.json", "tables.md", "report.html",
    "charts/speedup.pdf"]))
def test_a_missing_file_is_named(run, name):
    (run / name).unlink()
    check(run, status=1, error=Path(name).stem)


def test_another_column_is_named(run):
    text = (run / "step.csv").read_text().replace("median_s", "mean_s")
    (run / "step.csv").write_text(text)
    check(run, status=1, error="mean_s")


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
    write_rows(run / "summary.csv", columns.SUMMARY, [*map(summary_row, PRIMITIVES), bad])
    check(run, status=1, error=("packed", message), lines=1)


@pytest.mark.parametrize("name, change, message", [
    ("summary.json", lambda content: content["rows"].pop(), "rows; summary.csv has"),
    ("summary.json", lambda content: content["columns"].reverse(), "not those of summary.csv"),
    ("step.json", lambda content: content["rows"][0].pop("layer"), "a row has other fields"),
    ("step.json", lambda content: content.pop("rows"), "no rows; step.csv has 1"),
    ("columns.json", lambda content: content["tables"]["train"].pop(), "train.csv:1: column 26"),
    ("columns.json", lambda content: content["tables"].pop("samples"), "not describe samples.csv"),
    ("columns.json", lambda content: content["tables"]["step"][0].pop("meaning"), "no meaning")])
def test_json_files_that_differ_from_the_csv_files_are_named(run, name, change, message):
    with changing(run / name) as content:
        change(content)
    check(run, status=1, error=(name, message), lines=1)


@pytest.mark.parametrize("name, text", [
    ("summary.json", "{"), ("columns.json", "[]"), ("tables.md", "nothing\n"),
    ("report.html", "<!doctype html>\n<p>half")])
def test_a_malformed_file_is_named(run, name, text):
    (run / name).write_text(text)
    check(run, status=1, error=f"{run / name}: ")


def test_a_variant_that_cannot_run_here_is_a_row_without_a_problem(run):
    absent = summary_row("matmul", variant="cublas", problem="", threads="", status="unavailable",
                         verified="", median_s="", reason="no CUDA device")
    write_rows(run / "summary.csv", columns.SUMMARY, [*map(summary_row, PRIMITIVES), absent])
    check(run)
    write_rows(run / "summary.csv", columns.SUMMARY,
               [*map(summary_row, PRIMITIVES), absent | {"reason": ""}])
    check(run, status=1, error="summary: matmul cublas: unavailable, without a reason")


def test_an_unavailable_row_with_its_reason_is_fine(run):
    absent = summary_row("matmul", status="unavailable", verified="", median_s="", reason="no GPU")
    write_rows(run / "summary.csv", columns.SUMMARY, [*map(summary_row, PRIMITIVES), absent])
    check(run)


def test_a_primitive_that_was_not_measured_is_named(run):
    write_rows(run / "summary.csv", columns.SUMMARY, map(summary_row, PRIMITIVES[1:]))
    check(run, status=1, error=f"no ok row of {PRIMITIVES[0]}")


def test_a_loss_that_is_no_number_is_named(run):
    write_rows(run / "train.csv", columns.TRAIN, [{"step": 1, "loss": "nan"}])
    check(run, status=1, error="loss")


def test_every_problem_is_reported_at_once(run):
    (run / "train.csv").unlink()
    (run / "charts/speedup.png").unlink()
    check(run, status=1, lines=2)


INFERENCE = columns.documented("inference")


def with_inference(run, **values):
    """The run with requests: a layer, and a total with these values."""
    with changing(run / "columns.json") as content:
        content["tables"]["inference"] = columns.described(INFERENCE)
    about = {"network": "mlp", "use": "best", "split": "inside", "batch": 8, "threads": 1,
             "status": "ok"}
    total = {"layer": "total", "verified": "yes", "median_s": 0.5, "p50_s": 0.5, "p90_s": 0.6,
             "p99_s": 0.7, "max_s": 0.7, "samples_per_s": 16}
    rows = [about | {"layer": "fc1", "median_s": 0.5, "share": 100}, about | total | values]
    write_csv(run / "inference.csv", rows, INFERENCE)
    (run / "inference.json").write_text(json.dumps(
        {"schema_version": schema.SCHEMA_VERSION, "columns": list(INFERENCE),
         "rows": [{name: row.get(name) for name in INFERENCE} for row in rows]}))


def test_requests_are_checked_where_a_run_has_them(run):
    with_inference(run)
    check(run, lines=0)
    (run / "inference.json").unlink()
    check(run, status=1, error="inference.json")


@pytest.mark.parametrize("values, message", [
    ({"status": "failed", "reason": "the outputs differ"}, "failed (the outputs differ)"),
    ({"status": "unavailable"}, "unavailable, without a reason"),
    ({"status": "fine"}, "unknown status 'fine'"),
    ({"verified": "no"}, "ok, but verified is 'no'"),
    ({"p90_s": 0.4}, "the percentiles are [0.5, 0.4, 0.7, 0.7]"),
    ({"max_s": ""}, "the percentiles are [0.5, 0.6, 0.7, None]"),
    ({"samples_per_s": 0}, "samples_per_s is '0.0'"),
    ({"layer": "fc2", "median_s": ""}, "ok, without median_s or share")])
def test_a_bad_row_of_requests_is_named(run, values, message):
    with_inference(run, **values)
    check(run, status=1, error=("inference: mlp best", message), lines=1)
