"""bench writes a whole run folder, proves what it times, and every row can be repeated alone."""

import json
import os
import shlex
import shutil
import subprocess

import pytest

from conftest import QUICK, read_csv

SUMMARY = """primitive direction variant technique builds_on suite problem shape precision layout prepacked cache threads
    ranks device status reason verified error_ratio repetitions median_s ci_low_s ci_high_s min_s prepare_s flops bytes
    gflops_per_s gbytes_per_s busbw_gbytes_per_s roof percent_of_roof speedup_vs_serial speedup_vs_vendor cycles
    instructions cpi energy_j repeat_command""".split()

KEY = ("primitive", "direction", "variant", "suite", "problem", "threads", "ranks", "cache")


def key_of(row):
    return tuple(row[name] for name in KEY)


def test_a_run_holds_all_its_files(finished_run):
    files = {path.name for path in finished_run.iterdir()}
    assert files == {"environment.json", "ceilings.json", "benchmark.json", "samples.csv", "summary.csv"}
    for name in ("environment", "ceilings", "benchmark"):
        assert json.loads((finished_run / f"{name}.json").read_text())["schema_version"] == 1


def test_the_environment_says_how_the_run_was_made(finished_run):
    environment = json.loads((finished_run / "environment.json").read_text())
    assert environment["seed"] == 1
    assert len(environment["commands"]) == 1 and " bench matmul --variant " in environment["commands"][0]
    assert environment["quiet_sentence"].startswith("The machine was ")


def test_the_summary_has_exactly_the_documented_columns(finished_run):
    header = (finished_run / "summary.csv").read_text().splitlines()[0]
    assert header.split(",") == SUMMARY


def test_every_row_that_is_ok_was_proved_and_has_times(finished_run):
    rows = read_csv(finished_run / "summary.csv")
    assert len({key_of(row) for row in rows}) == len(rows)
    ok = [row for row in rows if row["status"] == "ok"]
    assert {row["variant"] for row in ok} >= {"serial_ijk", "serial_ikj", "blocked", "simd_sse42"}
    assert {row["problem"] for row in ok} == {"one", "two"}
    for row in ok:
        assert row["verified"] == "yes"
        assert 0 < float(row["min_s"]) <= float(row["median_s"])
        assert float(row["ci_low_s"]) <= float(row["median_s"]) <= float(row["ci_high_s"])
        assert float(row["gflops_per_s"]) == pytest.approx(
            float(row["flops"]) / float(row["median_s"]) / 1e9, rel=1e-4)
        assert row["roof"] and float(row["percent_of_roof"]) > 0
        assert 0 <= float(row["error_ratio"]) <= 1


def test_every_row_that_is_not_ok_has_a_reason_and_no_time(finished_run):
    for row in read_csv(finished_run / "summary.csv"):
        if row["status"] != "ok":
            assert row["status"] == "unavailable" and row["reason"] and not row["median_s"]


def test_every_repetition_is_kept(finished_run):
    samples = read_csv(finished_run / "samples.csv")
    for row in read_csv(finished_run / "summary.csv"):
        own = [s for s in samples if (s["variant"], s["problem"]) == (row["variant"], row["problem"])]
        if row["status"] != "ok":
            assert not own
            continue
        assert [int(s["repetition"]) for s in own] == list(range(len(own)))
        assert len(own) >= int(row["repetitions"])
        undisturbed = sum(not s["marked"] for s in own)
        assert int(row["repetitions"]) in (undisturbed, len(own))
    names = [run["name"] for run in json.loads((finished_run / "benchmark.json").read_text())["benchmarks"]]
    assert len(names) == len(samples)


def test_a_rows_repeat_command_repeats_that_row_alone(stepladder, finished_run, tmp_path):
    rows = [row for row in read_csv(finished_run / "summary.csv") if row["status"] == "ok"]
    for row in (rows[0], rows[-1]):
        out = stepladder.new_run(tmp_path / row["variant"])
        program, *arguments = shlex.split(row["repeat_command"])
        assert program == "build/stepladder"
        done = stepladder(*arguments, *QUICK[2:], "--out", out)
        assert done.returncode == 0, done.stderr
        assert [key_of(again) for again in read_csv(out / "summary.csv")] == [key_of(row)]


def test_names_that_a_shell_would_read_are_quoted(stepladder, tmp_path):
    suite = tmp_path / "my suite.csv"
    suite.write_text("suite,name,count,source\ns,it's; 100%,50,\n")
    out = stepladder.new_run(tmp_path / "first")
    arguments = ("bench", "sgd_update", "--variant", "seria*", "--direction", "adam", "--suite-file", suite, "--seed", 9)
    assert stepladder(*arguments, *QUICK, "--out", out).returncode == 0
    row, = read_csv(out / "summary.csv")
    again = stepladder.new_run(tmp_path / "again")
    done = stepladder(*shlex.split(row["repeat_command"])[1:], *QUICK[2:], "--out", again)
    assert done.returncode == 0, done.stderr
    assert read_csv(again / "summary.csv")[0]["problem"] == "it's; 100%"
    environments = [json.loads((run / "environment.json").read_text()) for run in (out, again)]
    assert [environment["seed"] for environment in environments] == [9, 9]
    assert shlex.split(environments[0]["commands"][0])[3:5] == ["--variant", "seria*"]


def test_thread_counts_given_twice_are_measured_once(stepladder, tiny, tmp_path):
    out = stepladder.new_run(tmp_path / "run")
    done = stepladder("bench", "matmul", "--variant", "openmp", "--suite-file", tiny, *QUICK[2:], "--threads", "1,1",
                      "--out", out)
    assert done.returncode == 0, done.stderr
    assert len(read_csv(out / "summary.csv")) == 2


def test_cold_rows_say_so(stepladder, tiny, tmp_path):
    out = stepladder.new_run(tmp_path / "run")
    done = stepladder("bench", "matmul", "--variant", "serial_ikj", "--problem", "one", "--suite-file", tiny, *QUICK,
                      "--cold", "--out", out)
    assert done.returncode == 0, done.stderr
    row, = read_csv(out / "summary.csv")
    assert row["cache"] == "cold" and row["repeat_command"].endswith(" --cold")


def test_a_problem_too_big_for_memory_is_skipped_and_the_others_measured(stepladder, tiny, tmp_path):
    with open(tiny, "a") as file:
        file.write("tiny,huge,16777216,16777216,2,0,0,\n")
    out = stepladder.new_run(tmp_path / "run")
    done = stepladder("bench", "matmul", "--variant", "serial_ikj", "--suite-file", tiny, *QUICK, "--out", out)
    assert done.returncode == 0, done.stderr
    rows = {row["problem"]: row for row in read_csv(out / "summary.csv")}
    assert rows["one"]["status"] == rows["two"]["status"] == "ok"
    assert rows["huge"]["status"] == "skipped"
    words = rows["huge"]["reason"].split()  # needs 8388608.0 GiB; 21.2 GiB are available
    assert words[0] == "needs" and float(words[1]) > 1e6 and words[2] == "GiB;"
    assert float(words[3]) > 0 and words[4:] == ["GiB", "are", "available"]

    done = stepladder("verify", "matmul", "--variant", "serial_ikj", "--suite-file", tiny)
    assert done.returncode == 0
    assert "SKIPPED matmul huge: needs " in done.stdout and " GiB are available" in done.stdout


@pytest.fixture
def mpirun(stepladder):
    path = shutil.which("mpirun")
    if path is None or not stepladder.is_built_with("MPI"):
        pytest.skip("no MPI on this machine")
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    return [path, "-np", "2", *(["--oversubscribe"] if "Open MPI" in version else [])]


@pytest.fixture
def gradients(tmp_path):
    path = tmp_path / "gradients.csv"
    path.write_text("suite,name,count,source\ntiny,gradients,1000,\n")
    return path


def test_all_reduce_on_two_ranks_has_bus_bandwidth(stepladder, mpirun, gradients, tmp_path):
    out = stepladder.new_run(tmp_path / "run")
    done = stepladder("bench", "all_reduce", "--suite-file", gradients, *QUICK, "--out", out, launcher=mpirun)
    assert done.returncode == 0, done.stderr
    rows = read_csv(out / "summary.csv")
    assert {row["direction"] for row in rows} == {"sum", "mean"}
    assert {row["variant"] for row in rows} >= {"gather_broadcast", "ring", "mpi_allreduce"}
    between_gpus = {"peer_ring", "nccl"}  # in one process, without mpirun
    for row in rows:
        if row["variant"] in between_gpus:
            assert row["status"] == "unavailable" and row["reason"], row
            continue
        assert (row["status"], row["verified"], row["ranks"]) == ("ok", "yes", "2"), row["reason"]
        # 2 (p − 1) / p · size
        assert float(row["busbw_gbytes_per_s"]) == pytest.approx(4000 / float(row["median_s"]) / 1e9, rel=1e-4)
        assert row["repeat_command"].startswith("mpirun -np 2 build/stepladder bench all_reduce ")


def test_an_error_on_one_rank_ends_all_of_them(stepladder, mpirun, gradients, finished_run):
    done = stepladder("bench", "all_reduce", "--suite-file", gradients, *QUICK, "--out", finished_run, launcher=mpirun)
    assert done.returncode != 0
    assert "holds a run already" in done.stderr


def test_a_wrong_name_is_told_once_by_all_ranks(stepladder, mpirun):
    done = stepladder("bench", "all_reduce", "--variant", "rign", launcher=mpirun)
    assert done.returncode == 2
    assert done.stderr.count("nearest: ring") == 1


def test_one_rank_is_too_few_for_all_reduce(stepladder, tmp_path):
    done = stepladder("bench", "all_reduce", "--out", tmp_path / "run")
    assert done.returncode == 1
    assert "mpirun -np 2 build/stepladder bench all_reduce" in done.stderr
    assert not os.path.exists(tmp_path / "run")
