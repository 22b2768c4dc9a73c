"""compare finds a slowdown, and only a real one."""

import csv
import gzip
import json
import re
import shutil

import pytest

from conftest import read_csv


@pytest.fixture
def doctored(finished_run, tmp_path):
    """A copy of the run in which the times of one variant are multiplied. Its repetitions count as undisturbed, and
    differ by a few per cent."""
    def make(factor, variant="serial_ijk"):
        run = tmp_path / f"times_{factor}"
        if run.exists():
            return run
        shutil.copytree(finished_run, run)
        rows = read_csv(run / "samples.csv")
        medians = {(row["problem"], row["direction"], row["variant"]): row["median_s"]
                   for row in read_csv(run / "summary.csv") if row["status"] == "ok"}
        for row in rows:
            own = float(medians[row["problem"], row["direction"], row["variant"]])
            noise = 1 + 0.003 * (hash_of(row["variant"] + row["repetition"]) % 11 - 5)
            row.update(marked="", seconds=own * noise * (factor if row["variant"] == variant else 1))
        with open(run / "samples.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        return run
    return make


def hash_of(text):
    return sum((i + 1) * ord(letter) for i, letter in enumerate(text))


def lines_of(variant, output):
    return [line for line in output.splitlines() if f" {variant} " in line]


def test_a_run_is_as_fast_as_itself(stepladder, finished_run):
    done = stepladder("compare", finished_run, finished_run)
    assert done.returncode == 0
    assert "SLOWER" not in done.stdout
    assert done.stdout.splitlines()[-1].startswith("0 slower, 0 faster, ")
    assert " 1.000 " in done.stdout


def test_a_slower_run_exits_1_and_shows_the_rows(stepladder, finished_run, doctored):
    done = stepladder("compare", doctored(1), doctored(10))
    assert done.returncode == 1
    slower = lines_of("serial_ijk", done.stdout)
    assert len(slower) == 2 and all(line.endswith("SLOWER") for line in slower)
    assert all(re.search(r" 10\.0\d\d | 9\.9\d\d ", line) for line in slower)
    assert done.stdout.count("SLOWER") == 2


def test_the_result_as_json_has_rows_totals_and_the_same_exit_status(stepladder, finished_run, doctored):
    done = stepladder("compare", doctored(1), doctored(10), "--json")
    assert done.returncode == 1 and done.stderr == ""
    content = json.loads(done.stdout)
    assert content["schema_version"] == 2
    slower = [row for row in content["rows"] if row["verdict"] == "slower"]
    assert {(row["variant"], row["problem"]) for row in slower} == {("serial_ijk", "one"), ("serial_ijk", "two")}
    for row in content["rows"]:
        # beside the others of the problem, which are as fast as before
        assert row["ratio"] == pytest.approx(row["new_s"] / row["old_s"], rel=0.01)
        assert row["ratio_low"] <= row["ratio"] <= row["ratio_high"] and 0 <= row["p"] <= 1
        assert (row["verdict"] == "cannot tell") == (row["reason"] != "")
        assert (row["primitive"], row["threads"], row["ranks"]) == ("matmul", 1, 1)
        assert row["direction"] in ("forward", "backward_data")
    totals = content["totals"]
    assert (totals["slower"], totals["faster"], totals["in_one_run_only"]) == (2, 0, 0)
    assert totals["same"] + totals["cannot_tell"] == len(content["rows"]) - 2
    assert stepladder("compare", finished_run, finished_run, "--json").returncode == 0
    assert stepladder("compare", finished_run, finished_run / "none", "--json").returncode == 2


def test_a_faster_run_exits_0(stepladder, finished_run, doctored):
    done = stepladder("compare", doctored(1), doctored(0.1))
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].startswith("0 slower, 2 faster, ")


def test_a_change_below_the_threshold_does_not_count(stepladder, finished_run, doctored):
    assert stepladder("compare", doctored(1), doctored(10), "--threshold", 100000).returncode == 0


def test_rows_of_one_run_only_are_counted(stepladder, finished_run, doctored):
    run = doctored(1)
    lines = (run / "samples.csv").read_text().splitlines(keepends=True)
    (run / "samples.csv").write_text("".join(line for line in lines if ",serial_ijk," not in line))
    done = stepladder("compare", finished_run, run)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].endswith(", 2 in one run only")


def test_compressed_samples_are_compared_as_the_others(stepladder, finished_run, doctored):
    run = doctored(1)
    samples = run / "samples.csv"
    samples.with_name("samples.csv.gz").write_bytes(gzip.compress(samples.read_bytes()))
    plain = stepladder("compare", finished_run, run).stdout
    samples.unlink()
    assert stepladder("compare", finished_run, run).stdout == plain
    whole = (run / "samples.csv.gz").read_bytes()
    (run / "samples.csv.gz").write_bytes(whole[:len(whole) // 2])
    done = stepladder("compare", finished_run, run)
    assert done.returncode == 2
    assert "samples.csv.gz: byte offset" in done.stderr and "truncated gzip" in done.stderr


def test_what_cannot_be_compared_exits_2(stepladder, finished_run, doctored, tmp_path):
    done = stepladder("compare", finished_run, tmp_path / "none")
    assert done.returncode == 2
    assert "none/samples.csv: cannot open: No such file" in done.stderr

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


@pytest.mark.parametrize("seconds", ["inf", "nan", "0", "-1", "0.5x", ""])
def test_a_time_that_is_none_is_named(stepladder, finished_run, doctored, seconds):
    run = doctored(1)
    rows = read_csv(run / "samples.csv")
    rows[3]["seconds"] = seconds
    with open(run / "samples.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    done = stepladder("compare", finished_run, run)
    assert done.returncode == 2
    assert f'samples.csv:5: column seconds holds "{seconds}"; expected a time' in done.stderr
