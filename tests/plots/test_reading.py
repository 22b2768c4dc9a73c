from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from plots.data.errors import InputError
from plots.data.reading import load_run, read_table, read_tables
from run_folder import ceiling, csv_text, row, summary_row, write_json
from tests import columns


def write_text(folder, name: str, text: str):
    (folder / name).write_text(text)
    (folder / "columns.json").write_text(columns.JSON)


def write_train(folder, text: str):
    write_text(folder, "train.csv", text)


def train_text(*rows: list[str]) -> str:
    return csv_text(columns.TRAIN, list(rows))


GOOD = row(columns.TRAIN, step=1, epoch=0, seconds=0.5, loss=2.3, mode="single")


def test_columns_and_their_types_are_those_of_columns_json(tmp_path):
    described = {"step": [{"name": "layer", "type": "text", "meaning": "a name"},
                          {"name": "legs", "type": "integer"},
                          {"name": "weight", "type": "number", "unit": "kg"}]}
    write_json(tmp_path / "columns.json", tables=described)
    (tmp_path / "step.csv").write_text("layer,legs,weight\n4,4,4\n,,\n")
    full, empty = load_run(tmp_path).step
    assert list(full.items()) == [("layer", "4"), ("legs", 4), ("weight", 4.0)]
    assert isinstance(full["legs"], int) and isinstance(full["weight"], float)
    assert empty == {"layer": "", "legs": None, "weight": None}
    with pytest.raises(InputError, match=r"step\.csv: has no column 'median_s'"):
        full["median_s"]


@pytest.mark.parametrize("text, message", [
    ("{\n oops", r"columns\.json:2: "), ("{}", "schema_version is None, expected 1"),
    ('{"schema_version": 1}', "expected an object named 'tables'"),
    ('{"schema_version": 1, "tables": {"train": 5}}', "expected a list of columns of 'train'"),
    ('{"schema_version": 1, "tables": {"train": [{"name": "x"}]}}',
     r"train\[0\] has no proper name or type; expected .* text, integer, number"),
    ('{"schema_version": 1, "tables": {"train": [{"name": "x", "type": "complex"}]}}', "no proper"),
    ('{"schema_version": 1, "tables": {}}', r"columns\.json: does not describe train\.csv")])
def test_malformed_columns(tmp_path, text, message):
    write_train(tmp_path, train_text(GOOD))
    (tmp_path / "columns.json").write_text(text)
    with pytest.raises(InputError, match=message):
        load_run(tmp_path)


def test_without_columns_json_a_csv_file_cannot_be_read(tmp_path):
    write_train(tmp_path, train_text(GOOD))
    (tmp_path / "columns.json").unlink()
    with pytest.raises(InputError, match=r"columns\.json: missing; .* Copy it from a run"):
        load_run(tmp_path)


PUBLISHED = [path.parent for path in Path(__file__).parents[2].glob("results/*/**/columns.json")
             if "local" not in path.parts]


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda path: path.name)
def test_published_results_can_be_read(folder):
    names = {path.name.removesuffix(".gz") for path in folder.glob("*.csv*")}
    read = [read_table(folder / name, []) for name in names
            if name.removesuffix(".csv") in read_tables(folder)]
    assert read and all(read)


def test_a_whole_run(run_dir):
    run = load_run(run_dir)
    assert run.warnings == []
    assert run.environment["cores"] == 2
    assert all(part for part in (run.ceilings, run.summary, run.step, run.train, run.samples))


def test_values_have_types_and_what_does_not_apply_is_none(run_of):
    found, = run_of([
        summary_row("serial", 0.25, repetitions=11, flops="1e9", bytes="inf", cpi="nan",
                    repeat_command='stepladder bench --variant "a,b"\nand more')]).summary
    assert found["median_s"] == 0.25
    assert found["repetitions"] == 11 and isinstance(found["repetitions"], int)
    assert found["flops"] == 1e9
    assert found["bytes"] is found["cpi"] is found["energy_j"] is None
    assert found["repeat_command"] == 'stepladder bench --variant "a,b"\nand more'


def test_files_that_are_absent_are_none(tmp_path):
    write_train(tmp_path, train_text(GOOD))
    run = load_run(tmp_path)
    assert run.summary is run.step is run.samples is run.environment is run.ceilings is None
    assert len(run.train) == 1


@pytest.mark.parametrize("change, message", [
    (lambda names: ["networks", *names[1:]], "column 1 is 'networks', expected 'network'"),
    (lambda names: names[:-1], "the columns end after 25, expected 'staleness_max' next"),
    (lambda names: [*names, "extra"], "column 27 'extra' is not expected"),
    (lambda names: [names[1], names[0], *names[2:]], "column 1 is 'use', expected 'network'")])
def test_another_header_is_an_error_that_says_where_and_what(tmp_path, change, message):
    header = ",".join(change(columns.TRAIN.names))
    write_train(tmp_path, header + "\n")
    with pytest.raises(InputError) as error:
        load_run(tmp_path)
    assert str(error.value).startswith(f"{tmp_path / 'train.csv'}:1: {message}")
    assert "step,epoch,samples,seconds" in str(error.value)


def test_a_torn_last_line_is_skipped_with_a_warning(tmp_path):
    whole = train_text(GOOD, GOOD)
    for missing in (1, 5, 12):
        write_train(tmp_path, whole[:-missing])
        run = load_run(tmp_path)
        assert len(run.train) == 1
        assert run.warnings == [f"{tmp_path / 'train.csv'}:3: the last line is torn (no newline "
                                "at its end); skipped"]


def test_compressed_files_are_read_where_the_plain_ones_are_absent(tmp_path):
    write_train(tmp_path, train_text(GOOD, GOOD))
    plain = load_run(tmp_path).train
    path = tmp_path / "train.csv"
    compressed = gzip.compress(path.read_bytes())
    path.unlink()
    (tmp_path / "train.csv.gz").write_bytes(compressed)
    assert load_run(tmp_path).train == plain and len(plain) == 2
    for damaged in (compressed[:-9], b"no gzip", compressed[:12] + b"\xff" * 30):
        (tmp_path / "train.csv.gz").write_bytes(damaged)
        with pytest.raises(InputError, match="train.csv.gz: expected gzip data"):
            load_run(tmp_path)


def test_a_line_torn_inside_quotation_marks(tmp_path):
    text = csv_text(columns.SUMMARY, [summary_row("a", 1.0), summary_row("b", 2.0, reason="x, y")])
    write_text(tmp_path, "summary.csv", text[:text.rindex("x, y") + 2])
    run = load_run(tmp_path)
    assert [found["variant"] for found in run.summary] == ["a"]
    assert len(run.warnings) == 1


def test_an_empty_file_is_a_warning(tmp_path):
    write_train(tmp_path, "")
    run = load_run(tmp_path)
    assert run.train == []
    assert "empty" in run.warnings[0]


def test_a_short_line_in_the_middle_is_an_error(tmp_path):
    write_train(tmp_path, train_text(GOOD) + "1,2,3\n" + ",".join(GOOD) + "\n")
    with pytest.raises(InputError, match=r"train\.csv:3: 3 fields, expected 26"):
        load_run(tmp_path)


def test_lines_are_counted_through_quoted_newlines(tmp_path):
    text = csv_text(columns.SUMMARY, [summary_row("a", 1.0, repeat_command="two\nlines"),
                                     summary_row("b", 1.0, threads="many")])
    write_text(tmp_path, "summary.csv", text)
    with pytest.raises(InputError, match=r"summary\.csv:4: column threads is 'many', expected a "
                                         "whole number"):
        load_run(tmp_path)


@pytest.mark.parametrize("change",
                         [lambda text: "\ufeff" + text, lambda text: text.replace("\n", "\r\n")],
                         ids=["byte order mark", "carriage returns"])
def test_a_table_that_a_spreadsheet_saved(tmp_path, change):
    write_train(tmp_path, "")
    (tmp_path / "train.csv").write_bytes(change(train_text(GOOD)).encode())
    run = load_run(tmp_path)
    assert [found["step"] for found in run.train] == [1] and run.warnings == []


def test_large_whole_numbers_are_exact(tmp_path):
    write_train(tmp_path, train_text(row(columns.TRAIN, step=2**63 - 1)))
    assert load_run(tmp_path).train[0]["step"] == 2**63 - 1


@pytest.mark.parametrize("column, value, expected", [
    ("seconds", "soon", "a number"), ("step", "1.5", "a whole number"),
    ("seconds", "1_0.5", "a number"),
    ("step", "1_0", "a whole number"), ("seconds", " 1", "a number"),
    ("seconds", "infinity", "a number"),
    ("seconds", "1e999", "a number"), ("seconds", "\u0661", "a number")])
def test_a_wrong_value_is_an_error(tmp_path, column, value, expected):
    write_train(tmp_path, train_text(row(columns.TRAIN, **{column: value})))
    with pytest.raises(InputError, match=f"column {column} is '{value}', expected {expected}"):
        load_run(tmp_path)


def test_bytes_that_are_no_text(tmp_path):
    (tmp_path / "train.csv").write_bytes(b"step,\xff\n")
    with pytest.raises(InputError, match="byte 5 is not UTF-8"):
        load_run(tmp_path)


def test_folders_that_are_no_run(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        load_run(tmp_path / "absent")
    with pytest.raises(InputError, match="holds none of"):
        load_run(tmp_path)


@pytest.mark.parametrize("text, message", [
    ("{\n oops", r"environment\.json:2: "), ("[]", "expected a JSON object"),
    ("{}", "schema_version is None, expected 1"),
    ('{"schema_version": 2}', "schema_version is 2, expected 1")])
def test_a_malformed_environment(tmp_path, text, message):
    (tmp_path / "environment.json").write_text(text)
    with pytest.raises(InputError, match=message):
        load_run(tmp_path)


def test_a_ceiling_that_was_not_measured_is_left_out(tmp_path):
    write_json(tmp_path / "ceilings.json",
               ceilings=[ceiling("fma_peak", "GFLOP/s", value) for value in (None, 2.5)])
    assert [c["value"] for c in load_run(tmp_path).ceilings] == [2.5]


def test_refused_ceilings_and_why(tmp_path):
    low = "the FMA peak is 117.3 GFLOP/s on 4 threads and 117.2 on one"
    refused = [{"threads": 2, "cores_of_others": 0.75},
               {"threads": 4, "cores_of_others": 0.0, "inconsistent": low}]
    write_json(tmp_path / "ceilings.json", ceilings=[], refused=refused)
    assert load_run(tmp_path).refused_ceilings == {
        2: "other processes used 0.8 cores while they were measured", 4: low}
    write_json(tmp_path / "ceilings.json", ceilings=[], refused=[3])
    with pytest.raises(InputError, match="'refused' is no list of objects with threads and "
                                         "cores_of_others"):
        load_run(tmp_path)


def test_a_malformed_ceiling(tmp_path):
    whole = ceiling("fma_peak", "GFLOP/s", 1.0)
    write_json(tmp_path / "ceilings.json",
               ceilings=[whole, {name: whole[name] for name in whole if name != "value"}])
    with pytest.raises(InputError, match=r"ceilings\[1\] has no proper 'value'"):
        load_run(tmp_path)
