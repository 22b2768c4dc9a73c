"""compare finds a slowdown, and only a real one."""

import functools
import gzip
import itertools
import json
import re
import shutil

import pytest

from tests.commands import read_csv, write_csv


@pytest.fixture
def doctored(finished_run, tmp_path):
    """A copy of the run in which the times of one variant are multiplied. Its repetitions count as
    undisturbed, and differ by a few per cent."""
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
            row.update(marked="",
                       seconds=own * noise * (factor if row["variant"] == variant else 1))
        write_csv(run / "samples.csv", rows)
        return run
    return make


def hash_of(text):
    return sum((i + 1) * ord(letter) for i, letter in enumerate(text))


@pytest.fixture
def compare(stepladder):
    return functools.partial(stepladder, "compare")


def lines_of(variant, output):
    return [line for line in output.splitlines() if f" {variant} " in line]


def test_a_run_is_as_fast_as_itself(compare, doctored):
    done = compare(doctored(1), doctored(1))
    assert "SLOWER" not in done.stdout
    assert done.stdout.splitlines()[-1].startswith("0 slower, 0 faster, ")
    assert " 1.000 " in done.stdout


def test_a_line_that_a_crash_tore_is_left_out(compare, finished_run, tmp_path):
    run = shutil.copytree(finished_run, tmp_path / "run")
    text = (run / "samples.csv").read_text()
    for torn in (text[:-1], text[:text.rindex(",")]):  # with and without all of its fields
        (run / "samples.csv").write_text(torn)
        done = compare(finished_run, run)
        lines = len(text.splitlines())
        assert done.stderr == (f"{run}/samples.csv:{lines}: the last line is torn "
                               "(no newline at its end); skipped\n")


def test_a_slower_run_exits_1_and_shows_the_rows(compare, finished_run, doctored):
    done = compare(doctored(1), doctored(10), status=1)
    slower = lines_of("serial_ijk", done.stdout)
    assert len(slower) == 2 and all(line.endswith("SLOWER") for line in slower)
    assert all(re.search(r" 10\.0\d\d | 9\.9\d\d ", line) for line in slower)
    assert done.stdout.count("SLOWER") == 2


def test_the_result_as_json_has_rows_totals_and_the_same_exit_status(compare, finished_run,
                                                                     doctored):
    done = compare(doctored(1), doctored(10), "--json", status=1, lines=0)
    content = json.loads(done.stdout)
    assert content["schema_version"] == 2
    slower = [row for row in content["rows"] if row["verdict"] == "slower"]
    assert {(row["variant"], row["problem"]) for row in slower} == {("serial_ijk", "one"),
                                                                    ("serial_ijk", "two")}
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
    compare(finished_run, finished_run, "--json")
    compare(finished_run, finished_run / "none", "--json", status=2)


def test_a_faster_run_exits_0(compare, finished_run, doctored):
    done = compare(doctored(1), doctored(0.1))
    assert done.stdout.splitlines()[-1].startswith("0 slower, 2 faster, ")


def test_a_change_below_the_threshold_does_not_count(compare, finished_run, doctored):
    compare(doctored(1), doctored(10), "--threshold", 100000)


def without_lines(run, name, text):
    lines = (run / name).read_text().splitlines(keepends=True)
    (run / name).write_text("".join(line for line in lines if text not in line))


def copy_of(run, tmp_path):
    return shutil.copytree(run, tmp_path / "copy")


def test_rows_of_one_run_only_are_counted_and_named(compare, doctored, tmp_path):
    before, after = doctored(1), copy_of(doctored(1), tmp_path)
    without_lines(after, "samples.csv", ",serial_ijk,")
    done = compare(before, after)
    assert f"only in {before}: matmul rung serial_ijk, 2 rows" in done.stdout
    assert done.stdout.splitlines()[-1].endswith(", 2 in one run only")
    content = json.loads(compare(after, before, "--json").stdout)
    assert [row["variant"] for row in content["only_in_new"]
            ] == ["serial_ijk"] * 2 and content["only_in_old"] == []

    shutil.copy(before / "samples.csv", after / "samples.csv")
    without_lines(after, "samples.csv", ",two,")
    assert f"only in {before}: matmul problem " in compare(before, after).stdout
    shutil.copy(before / "samples.csv", after / "samples.csv")
    without_lines(after, "samples.csv", ",serial_ijk,two,")
    assert re.search(f"only in {before}: matmul \\w+ two serial_ijk t1 r1\n",
                     compare(before, after).stdout)


def test_a_rung_that_fails_now_is_an_error(compare, doctored, tmp_path):
    before, after = doctored(1), copy_of(doctored(1), tmp_path)
    without_lines(after, "samples.csv", ",serial_ijk,")
    rows = read_csv(after / "summary.csv")
    for row in rows:
        if row["variant"] == "serial_ijk":
            row.update(status="failed", reason="element 3 is wrong")
    write_csv(after / "summary.csv", rows)
    done = compare(before, after, status=1)
    assert re.search(f"FAILED in {after}: matmul \\w+ one serial_ijk t1 r1: element 3 is wrong",
                     done.stdout)
    assert done.stdout.splitlines()[-1].endswith(", 2 in one run only, 2 FAILED")
    content = json.loads(compare(before, after, "--json", status=1).stdout)
    assert [(row["variant"], row["reason"]) for row in content["failed"]] == [
        ("serial_ijk", "element 3 is wrong")] * 2
    compare(after, before)  # repaired
    compare(after, after)   # as before


def test_one_repetition_is_said_and_gives_no_ratio(compare, doctored, tmp_path):
    before, after = doctored(1), copy_of(doctored(1), tmp_path)
    rows = read_csv(after / "samples.csv")
    first = {(row["problem"], row["direction"], row["variant"]): row for row in reversed(rows)}
    write_csv(after / "samples.csv", first.values())
    done = compare(before, after)
    assert "disturbed" not in done.stdout and " 1.000" not in done.stdout
    for line in lines_of("serial_ijk", done.stdout):
        assert re.search(
            r" - +- +- +cannot tell: one repetition in a run; measure it longer, with --budget$",
            line)
    for row in json.loads(compare(before, after, "--json").stdout)["rows"]:
        assert (row["ratio"], row["ratio_low"], row["ratio_high"], row["p"]) == (None,) * 4


def test_a_ratio_that_the_medians_contradict_cannot_be_told(compare, of_many_problems, tmp_path):
    """The other rows of its problem take half of the time, and it did not change."""
    def write(name, others):
        run = of_many_problems(name, 1)
        rows = read_csv(run / "samples.csv")
        for row in rows:
            if row["variant"] != "a":
                row["seconds"] = float(row["seconds"]) * others
        rows = [row for row in rows if row["problem"] == "p00"]
        write_csv(run / "samples.csv", rows)
        return run

    content = json.loads(compare(write("before", 1), write("after", 0.5), "--json").stdout)
    row = content["rows"][0]
    assert (row["variant"], row["verdict"]) == ("a", "cannot tell")
    assert row["ratio"] == pytest.approx(2) and row["p"] < 0.05
    assert row["reason"] == "its own medians give 1.000: the other rows changed"


def test_compressed_samples_are_compared_as_the_others(compare, finished_run, doctored):
    run = doctored(1)
    samples = run / "samples.csv"
    samples.with_name("samples.csv.gz").write_bytes(gzip.compress(samples.read_bytes()))
    plain = compare(finished_run, run).stdout
    samples.unlink()
    assert compare(finished_run, run).stdout == plain
    whole = (run / "samples.csv.gz").read_bytes()
    (run / "samples.csv.gz").write_bytes(whole[:len(whole) // 2])
    compare(finished_run, run, status=2, error=("samples.csv.gz: byte offset", "truncated gzip"))


def test_what_cannot_be_compared_exits_2(compare, finished_run, doctored, tmp_path):
    compare(finished_run, tmp_path / "none", status=2,
            error="none/samples.csv: cannot open: No such file")

    run = doctored(1)
    lines = (run / "samples.csv").read_text().splitlines(keepends=True)
    (run / "samples.csv").write_text(lines[0])
    compare(finished_run, run, status=2, error=f"{finished_run} and {run} have no row in common")

    (run / "samples.csv").write_text(lines[0] + "torn\n")
    compare(finished_run, run, status=2, error="samples.csv:2: 1 fields; the header has")


@pytest.mark.parametrize("seconds", ["inf", "nan", "0", "-1", "0.5x", ""])
def test_a_time_that_is_none_is_named(compare, finished_run, doctored, seconds):
    run = doctored(1)
    rows = read_csv(run / "samples.csv")
    rows[3]["seconds"] = seconds
    write_csv(run / "samples.csv", rows)
    compare(finished_run, run, status=2,
            error=f'samples.csv:5: column seconds holds "{seconds}"; expected a time')


@pytest.fixture
def of_many_problems(finished_run, tmp_path):
    """A run of four rungs on sixteen problems, whose two visits are 2.4 % apart: rows cannot tell
    5 %, rungs can."""
    columns = (finished_run / "samples.csv").read_text().splitlines()[0].split(",")

    def make(name, factor):
        run = tmp_path / name
        run.mkdir()
        rounds = itertools.count(1)  # no two rows have a round in common
        write_csv(run / "samples.csv", [
            {"primitive": "matmul", "direction": "forward", "problem": f"p{problem:02}",
             "variant": variant, "threads": 3, "ranks": 2, "repetition": next(rounds),
             "visit": visit,
             "seconds": 1e-3 * 1.012 ** (2 * visit - 1) * (factor if variant == "a" else 1)}
            for problem, variant, visit, _ in itertools.product(range(16), "abcd", (0, 1), (0, 1))
        ], columns)
        return run
    return make


def test_a_rung_that_is_slower_over_its_problems_exits_1_although_no_row_can_tell(compare,
                                                                                  of_many_problems):
    before, after = of_many_problems("before", 1), of_many_problems("after", 1.05)
    content = json.loads(compare(before, after, "--json", status=1).stdout)
    assert content["totals"] == {
        "slower": 0, "faster": 0, "same": 48, "cannot_tell": 16, "in_one_run_only": 0, "failed": 0}
    assert (content["old"], content["new"]) == (str(before), str(after))
    assert (content["threshold_percent"], content["significance"]) == (5, 0.05)
    assert [rung["variant"] for rung in content["rungs"]] == ["a", "b", "c", "d"]
    for rung in content["rungs"]:
        assert (rung["primitive"], rung["threads"], rung["ranks"], rung["problems"]) == ("matmul",
                                                                                         3, 2, 16)
        slower = rung["variant"] == "a"
        assert rung["ratio"] == pytest.approx(1.05 if slower else 1)
        assert rung["ratio_low"] < rung["ratio"] < rung["ratio_high"]
        assert (rung["verdict"] == "slower") == slower == (rung["p"] < 0.05)
    assert {row["direction"] for row in content["rows"]} == {"forward"}

    lines = compare(before, after, status=1).stdout.splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("rung over its problems"))
    assert re.fullmatch(r"matmul a t3 r2 +16 +1\.050 +1\.0\d\d \.\. 1\.0\d\d +0\.0\d\d +SLOWER",
                        lines[at + 1])
    assert [line.split()[1] for line in lines[at + 1:at + 5]] == ["a", "b", "c", "d"]
    assert lines[
        -1] == "0 slower, 0 faster, 48 the same within 5 %, 16 cannot be told, 0 in one run only"
    assert re.fullmatch(
        r"matmul forward p00 a t3 r2 +0\.001 +0\.00105 +1\.050 +0\.\d+ \.\. \d\.\d+ +1\.000  "
        r"cannot tell: known within 1\.\d+ to 1\.\d+ alone", lines[1])
    assert f"ratio: time in {after} / time in {before}, beside the other rows" in lines[-3]
    assert lines[-2] == (
        "The intervals hold for all rows, and for all rungs, together at 95 %; `same` needs its "
        "own 90 % interval within 5 %.")
    compare(after, before)  # faster
    compare(before, before)


def test_values_stand_below_the_names_of_their_columns(compare, of_many_problems):
    lines = compare(of_many_problems("before", 1), of_many_problems("after", 1.05),
                    status=1).stdout.splitlines()
    rungs = next(at for at, line in enumerate(lines) if line.startswith("rung over its problems"))
    number = r" +([\d.]+)"
    judgement = number + r" +([\d.]+) \.\. ([\d.]+)" + number + "  [a-zS]"
    for head, row, before in ((0, 1, 2 * number), (rungs, rungs + 1, number)):
        found = re.search("t3 r2" + before + judgement, lines[row])
        assert found, lines[row]
        names = ["old s", "new s", "ratio"] if before == 2 * number else ["problems", "ratio"]
        for field, name in enumerate(names, 1):
            assert lines[head].rindex(name) + len(name) == found.end(field), name
        assert lines[head].rindex(" p") + 2 == found.end(len(names) + 3)
        assert lines[head].index("interval") == found.start(len(names) +
                                                            1) - 1  # there is a place for 10.000


@pytest.mark.parametrize(("option", "value", "taken"), [
    ("--significance", "1e-9", True),
    ("--significance", 0.5, True),
    ("--significance", 0.51, False),
    ("--significance", 0, False),
    ("--threshold", 0.01, True),
    ("--threshold", 0, False),
    ("--threshold", -5, False)])
def test_options_out_of_range_are_refused(compare, of_many_problems, option, value, taken):
    run = of_many_problems("before", 1)
    compare(run, run, option, value, **({} if taken else {"status": 2, "error": option}))
