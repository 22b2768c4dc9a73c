"""A run folder is never overwritten, fails before measuring if it cannot be used, and loses no
finished row."""

import json
import os
import re
import resource
import shlex
import shutil
import signal

import pytest

from conftest import MATMUL_HEADER, QUICK, TINY_VARIANTS, wait_for_rows
from tests.commands import ROOT, execute, read_csv

KEY = ("direction", "variant", "suite", "problem", "threads")


@pytest.fixture
def many(tmp_path):
    """Enough problems for a signal to come in the middle."""
    path = tmp_path / "many.csv"
    path.write_text(MATMUL_HEADER + "".join(f"many,p{i},{20 + i},20,17,0,0,\n" for i in range(60)))
    return path


def keys(run):
    rows = [tuple(row[name] for name in KEY) for row in read_csv(run / "summary.csv")]
    assert len(rows) == len(set(rows)), "a row is there twice"
    return rows


def of_tiny(tiny, run, *more):
    """The arguments of a quick run of the tiny suite."""
    return ("bench", "matmul", "--suite-file", tiny, *QUICK, "--out", run, *more)


def of_many(many, run, repetitions=2, budget=0.001):
    return ("bench", "matmul", "--variant", "serial_i??", "--suite-file", many, "--threads", 1,
            "--repetitions", repetitions, "--budget", budget, "--out", run)


@pytest.fixture
def copied(finished_run, tmp_path):
    return shutil.copytree(finished_run, tmp_path / "run")


def test_a_run_that_is_there_is_refused_and_left_alone(stepladder, finished_run, tiny):
    before = {path.name: path.read_bytes() for path in finished_run.iterdir()}
    stepladder(*of_tiny(tiny, finished_run), status=1,
               error=("holds a run already", "--resume", "--out"))
    assert {path.name: path.read_bytes() for path in finished_run.iterdir()} == before


def test_resuming_keeps_finished_rows_and_adds_missing_ones(stepladder, finished_run, tiny, copied):
    lines = (copied / "summary.csv").read_text().splitlines(keepends=True)
    kept = [line for line in lines
            if not line.startswith(("matmul,forward,blocked,", "matmul,forward,serial_ijk,"))]
    lost = len(lines) - len(kept)
    assert lost
    (copied / "summary.csv").write_text("".join(kept) + 'matmul,"torn')
    done = stepladder(*of_tiny(tiny, copied, "--variant", TINY_VARIANTS, "--resume"))
    assert f"{lost} rows ok" in done.stdout and "kept from before" in done.stdout
    after = (copied / "summary.csv").read_text().splitlines(keepends=True)
    assert after[:len(kept)] == kept
    assert sorted(keys(copied)) == sorted(keys(finished_run))
    assert len(json.loads((copied / "environment.json").read_text())["commands"]) == 2


def test_measuring_again_replaces_rows_and_samples_and_leaves_the_others(stepladder, finished_run,
                                                                         tiny, copied):
    run = copied
    before, samples = read_csv(run / "summary.csv"), read_csv(run / "samples.csv")
    done = stepladder("bench", "matmul", "--variant", "blocked", "--suite-file", tiny, "--threads",
                      "1", "--repetitions", "3", "--budget", "0.02", "--out", run, "--resume",
                      "--again")
    assert "2 rows ok" in done.stdout
    assert sorted(keys(run)) == sorted(keys(finished_run))
    kept = [row for row in before if row["variant"] != "blocked"]
    after = read_csv(run / "summary.csv")
    assert after[:len(kept)] == kept and [row["variant"]
                                          for row in after[len(kept):]] == ["blocked"] * 2
    assert all(3 <= int(row["repetitions"]) <= 20 for row in after[len(kept):])
    kept_samples = [row for row in samples if row["variant"] != "blocked"]
    after_samples = read_csv(run / "samples.csv")
    assert after_samples[:len(kept_samples)] == kept_samples
    new_repetitions = sum(int(row["repetitions"]) for row in after[len(kept):])
    new_samples = len(after_samples) - len(kept_samples)
    assert new_repetitions <= new_samples
    assert not any(row in after_samples for row in samples if row["variant"] == "blocked")


def start_many(stepladder, many, run):
    process = stepladder.start(*of_many(many, run, repetitions=5, budget=0.02))
    wait_for_rows(run, process, 6)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_finished_rows_and_the_command_that_goes_on(stepladder, many, tmp_path,
                                                                    number):
    run = tmp_path / "a run"
    process = start_many(stepladder, many, run)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    finished = (run / "summary.csv").read_text()
    assert finished.endswith("\n") and 6 <= len(keys(run)) < 120
    assert json.loads((run / "environment.json").read_text())["quiet_sentence"]
    message, command = stderr.splitlines()[-3:-1]
    assert str(run) in message and "resume with" in message
    # quoted, so that a shell reads it as the first one did
    assert shlex.split(command) == [*process.args, "--resume"]

    execute("sh", "-c", command, cwd="/")
    assert (run / "summary.csv").read_text().startswith(finished)
    assert len(keys(run)) == 120


def test_a_killed_run_goes_on_from_its_finished_rows(stepladder, many, tmp_path):
    run = tmp_path / "run"
    process = start_many(stepladder, many, run)
    process.kill()
    process.communicate()
    finished = (run / "summary.csv").read_text()
    stepladder(*of_many(many, run), "--resume")
    assert (run / "summary.csv").read_text().startswith(finished[:finished.rfind("\n") + 1])
    assert len(keys(run)) == 120


def test_a_place_that_takes_no_files_is_refused_before_measuring(stepladder, tiny, tmp_path):
    (tmp_path / "file").touch()
    for out in (tmp_path / "file", tmp_path / "file/run", "/proc/self/run"):
        stepladder(*of_tiny(tiny, out), status=1, error=f"{out}: cannot be made")


def test_a_table_of_another_version_is_refused_before_measuring(stepladder, tiny, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "samples.csv").write_text("once,upon\na,time\n")
    stepladder(*of_tiny(tiny, run), status=1,
               error="samples.csv:1: its columns are not this version's")
    assert [path.name for path in run.iterdir()] == ["samples.csv"]


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    if execute("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder,
               status=None).returncode != 0:
        pytest.skip("this process may not mount a small disk")
    yield folder
    execute("umount", folder)


def test_a_full_disk_is_refused_before_measuring(stepladder, tiny, small_disk):
    stepladder(*of_tiny(tiny, small_disk / "run"), status=1, error="MiB are free; a run needs 64")
    assert not list((small_disk / "run").iterdir())


def test_a_disk_that_fills_up_loses_no_finished_row(stepladder, many, tmp_path):
    def limit_files():  # stands in for the disk
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE,
                           (20000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    run = tmp_path / "run"
    arguments = of_many(many, run)
    stepladder(*arguments, preexec_fn=limit_files, status=1,
               error=": cannot be written: File too large")
    finished = (run / "summary.csv").read_text()
    assert finished.endswith("\n") and 0 < len(keys(run)) < 120
    stepladder(*arguments, "--resume")
    assert (run / "summary.csv").read_text().startswith(finished)
    assert len(keys(run)) == 120


def test_without_out_a_run_is_named_by_its_time(stepladder, tiny):
    done = stepladder("bench", "matmul", "--variant", "serial_ijk", "--problem", "one",
                      "--suite-file", tiny, *QUICK)
    summary = done.stdout.splitlines()[-1]
    try:
        assert "/results/local/2" in summary and os.path.isfile(summary)
    finally:
        shutil.rmtree(os.path.dirname(summary))


def test_the_noise_is_that_of_the_whole_run_however_many_commands_made_it(stepladder, tiny,
                                                                          tmp_path):
    run = tmp_path / "run"
    for variant, more in (("blocked", ()), ("serial_i??", ("--resume",))):
        stepladder(*of_tiny(tiny, run, "--variant", variant, *more))
        environment = json.loads((run / "environment.json").read_text())
        repetitions = len(read_csv(run / "samples.csv"))
        assert environment["noise"]["repetitions"] == repetitions
        assert f" of {repetitions} repetitions" in environment["quiet_sentence"]


def test_the_documents_describe_every_column(finished_run):
    text = (ROOT / "docs/results-format.md").read_text()
    described = {}
    for name, table in re.findall(r"^## (\w+)\.csv\n\n((?:\|.*\n)+)", text, re.MULTILINE):
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
        described[name] = [
            (column.strip("`"), kind, unit, meaning) for column, kind, unit, meaning in rows]
    written = {
        name: [(c["name"], c["type"], c.get("unit", ""), c["meaning"]) for c in columns]
        for name, columns in json.loads((finished_run /
                                         "columns.json").read_text())["tables"].items()}
    assert described == written


@pytest.mark.parametrize(("name", "content"), [
    ("environment.json", {"commands": 3}),
    ("environment.json", {"noise": 3}),
    ("environment.json", {"started_at": []}),
    ("benchmark.json", {"benchmarks": 3}),
    ("ceilings.json", {"ceilings": [{}]}),
    ("ceilings.json", {"ceilings": [3]}),
    ("ceilings.json", [])])
def test_resumed_json_of_another_kind_is_named(stepladder, tiny, copied, name, content):
    (copied / name).write_text(json.dumps(content))
    stepladder(*of_tiny(tiny, copied, "--variant", "blocked", "--resume"), status=1,
               error=f"{name}: holds other JSON than a run writes")
