"""compare finds a slowdown, and only a real one."""

import csv
import json
import shutil

import pytest

from conftest import read_csv


@pytest.fixture
def doctored(finished_run, tmp_path):
    """A copy of the run in which the times of one variant are multiplied."""
    def make(factor, variant="serial_ijk"):
        run = tmp_path / f"times_{factor}"
        shutil.copytree(finished_run, run)
        rows = read_csv(run / "samples.csv")
        for row in rows:
            if row["variant"] == variant:
                row["seconds"] = float(row["seconds"]) * factor
        with open(run / "samples.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        return run
    return make


def lines_of(variant, output):
    return [line for line in output.splitlines() if f" {variant} " in line]


def test_a_run_is_as_fast_as_itself(stepladder, finished_run):
    done = stepladder("compare", finished_run, finished_run)
    assert done.returncode == 0
    assert "SLOWER" not in done.stdout
    assert done.stdout.splitlines()[-1].startswith("0 slower, 0 faster, ")


def test_a_slower_run_exits_1_and_shows_the_rows(stepladder, finished_run, doctored):
    done = stepladder("compare", finished_run, doctored(10))
    assert done.returncode == 1
    slower = lines_of("serial_ijk", done.stdout)
    assert len(slower) == 2 and all(line.endswith("SLOWER") for line in slower)
    assert all(" 10.000 " in line for line in slower)
    assert done.stdout.count("SLOWER") == 2


def test_the_result_as_json_has_rows_totals_and_the_same_exit_status(stepladder, finished_run, doctored):
    done = stepladder("compare", finished_run, doctored(10), "--json")
    assert done.returncode == 1 and done.stderr == ""
    content = json.loads(done.stdout)
    assert content["schema_version"] == 1
    slower = [row for row in content["rows"] if row["verdict"] == "slower"]
    assert {(row["variant"], row["problem"]) for row in slower} == {("serial_ijk", "one"), ("serial_ijk", "two")}
    for row in content["rows"]:
        assert row["ratio"] == pytest.approx(row["new_s"] / row["old_s"])
        assert row["ratio_low"] <= row["ratio"] <= row["ratio_high"] and 0 <= row["p"] <= 1
        assert (row["primitive"], row["threads"], row["ranks"]) == ("matmul", 1, 1)
        assert row["direction"] in ("forward", "backward_data")
    assert content["totals"] == {"slower": 2, "faster": 0, "same": len(content["rows"]) - 2, "in_one_run_only": 0}
    assert stepladder("compare", finished_run, doctored(1), "--json").returncode == 0
    assert stepladder("compare", finished_run, finished_run / "none", "--json").returncode == 2


def test_a_faster_run_exits_0(stepladder, finished_run, doctored):
    done = stepladder("compare", finished_run, doctored(0.1))
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].startswith("0 slower, 2 faster, ")


def test_a_change_below_the_threshold_does_not_count(stepladder, finished_run, doctored):
    assert stepladder("compare", finished_run, doctored(10), "--threshold", 1000).returncode == 0


def test_rows_of_one_run_only_are_counted(stepladder, finished_run, doctored):
    run = doctored(1)
    lines = (run / "samples.csv").read_text().splitlines(keepends=True)
    (run / "samples.csv").write_text("".join(line for line in lines if ",serial_ijk," not in line))
    done = stepladder("compare", finished_run, run)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].endswith(", 2 in one run only")


def test_what_cannot_be_compared_exits_2(stepladder, finished_run, doctored, tmp_path):
    done = stepladder("compare", finished_run, tmp_path / "none")
    assert done.returncode == 2
    assert "none/samples.csv: cannot be read" in done.stderr

    run = doctored(1)
    lines = (run / "samples.csv").read_text().splitlines(keepends=True)
    (run / "samples.csv").write_text(lines[0])
    done = stepladder("compare", finished_run, run)
    assert done.returncode == 2
    assert "no row in common" in done.stderr

    (run / "samples.csv").write_text(lines[0] + "torn")
    done = stepladder("compare", finished_run, run)
    assert done.returncode == 2
    assert "samples.csv:2: 1 fields; the header has" in done.stderr
