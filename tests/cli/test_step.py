"""step: a training step timed layer by layer."""

import json
import os

import pytest

from conftest import Command
from tests.commands import read_csv

BRIEF = ("--repetitions", "3", "--budget", "0.01")


@pytest.fixture
def step(stepladder, network, tmp_path):
    return Command(stepladder, tmp_path / "run", "step.csv", "step", "--network", network, *BRIEF)


def totals(rows):
    return [(row["use"], row["mode"], row["threads"]) for row in rows if row["layer"] == "total"]


def test_every_operation_has_a_row_and_the_step_its_total(step):
    _, rows = step("--use", "simd", "--threads", "1")
    assert [(row["layer"], row["phase"]) for row in rows] == [
        ("conv", "forward"), ("conv.bias", "forward"), ("relu1", "forward"), ("fc", "forward"),
        ("fc.bias", "forward"), ("softmax1", "forward"),
        ("fc.backward_data", "backward"), ("fc.backward_weights", "backward"),
        ("fc.bias", "backward"), ("relu1", "backward"), ("conv.backward_weights", "backward"),
        ("conv.bias", "backward"), ("parameters", "update"), ("total", "total")]
    assert all(float(row["median_s"]) > 0 and float(row["predicted_s"]) > 0 for row in rows)
    assert all(row["variant"] for row in rows[:-1]) and rows[-1]["variant"] == ""
    parts = sum(float(row["predicted_s"]) for row in rows[:-1])
    assert float(rows[-1]["predicted_s"]) == pytest.approx(parts, rel=1e-4)


def test_the_times_of_the_operations_add_up_to_most_of_the_step(stepladder, network, tmp_path):
    """In one of a few runs: a neighbour lengthens the step between two operations."""
    found = []
    for attempt in range(6):
        run = tmp_path / f"run{attempt}"
        stepladder("step", "--network", network, *BRIEF, "--use", "serial", "--threads", "1",
                   "--out", run)
        rows = read_csv(run / "step.csv")
        parts = sum(float(row["median_s"]) for row in rows[:-1])
        [events] = trace_of(run / "trace.json").values()
        last_end = max(end for _, _, end, _ in events)
        traced = sum(end - start for _, start, end, _ in events) / last_end
        found.append((parts / float(rows[-1]["median_s"]), traced))
        if found[-1][0] < 1.6 and traced > 0.4:
            return
    raise AssertionError(f"the operations take these shares of the step: {found}")


def test_step_json_has_the_rows_of_step_csv_also_after_resuming(step):
    for use in ("simd", "serial"):
        _, rows = step("--use", use, "--threads", "1", *(["--resume"] if use == "serial" else []))
        content = json.loads((step.run / "step.json").read_text())
        assert content["columns"] == list(rows[0])
        assert [row["use"] for row in content["rows"]] == [row["use"] for row in rows]
        assert [row["median_s"] for row in content["rows"]] == [
            float(row["median_s"]) for row in rows]
    described = json.loads((step.run / "columns.json").read_text())["tables"]["step"]
    assert [column["name"] for column in described] == content["columns"]


def test_a_sweep_over_operations_at_once_leaves_threads_to_the_scheduler(step):
    _, rows = step("--use", "openmp", "--threads", "1,2", "--inter", "1,2")
    assert totals(rows) == [("openmp", "inter=1", "1"), ("openmp", "inter=2", "1"),
                            ("openmp", "inter=1", "2"), ("openmp", "inter=2", "2")]
    environment = json.loads((step.run / "environment.json").read_text())
    assert environment["affinity"]["OMP_PROC_BIND"] == "false"
    assert environment["threads_available"] == len(os.sched_getaffinity(0))


def test_steps_of_one_thread_are_measured_once(step):
    uses = [word for use in ("serial", "compiler", "simd", "openmp") for word in ("--use", use)]
    _, rows = step(*uses, "--threads", "1,2")
    assert [(use, threads) for use, _, threads in totals(rows)] == [
        ("serial", "1"), ("compiler", "1"), ("simd", "1"), ("openmp", "1"), ("openmp", "2")]
    _, again = step(*uses, "--threads", "1,2", "--resume")
    assert again == rows


def test_a_sweep_is_refused_where_the_user_bound_the_threads(step, monkeypatch):
    monkeypatch.setenv("OMP_PROC_BIND", "true")
    _, rows = step("--inter", "2", status=1, error=("OMP_PROC_BIND=true", "unset it"))
    assert rows == []


def test_resuming_measures_only_what_is_missing(step):
    step("--use", "simd", "--threads", "1")
    done, first = step("--use", "simd", "--threads", "1", "--resume")
    assert "measured already" in done.stdout
    assert totals(first) == [("simd", "single", "1")]
    _, rows = step("--use", "simd", "--use", "serial", "--threads", "1", "--resume")
    assert totals(rows) == [("simd", "single", "1"), ("serial", "single", "1")]
    assert rows[:len(first)] == first


def test_ablation_swaps_one_primitive_at_a_time_for_its_serial_rung(step):
    _, rows = step("--use", "simd", "--ablate", "--threads", "1")
    assert totals(rows)[0] == ("simd", "single", "1")
    swapped = {use.removeprefix("simd,") for use, mode, _ in totals(rows) if mode == "ablate"}
    assert {"matmul=serial", "convolution=serial", "sgd_update=serial"} <= swapped
    variants = {row["use"]: row["variant"] for row in rows
                if (row["layer"], row["phase"]) == ("conv", "forward")}
    assert variants["simd,matmul=serial"] == variants["simd"] != variants["simd,convolution=serial"]


def test_a_step_on_the_device_has_rows_for_copies_or_says_that_there_is_no_device(step):
    done, rows = step("--use", "cuda", "--graph", "on,off", status=None)
    if done.returncode == 0:
        copies = [row["layer"] for row in rows if row["phase"] == "other"]
        assert copies == 2 * ["images", "labels", "loss"]
        assert all(row["device"] != "cpu" for row in rows)
        assert [mode for _, mode, _ in totals(rows)] == ["graph", "single"]
    else:
        assert done.returncode == 1 and rows == []
        assert "--use cuda: " in done.stderr
        assert "no CUDA device" in done.stderr or "built without CUDA" in done.stderr


def test_rungs_of_the_cpu_and_of_the_device_are_refused_together(step):
    _, rows = step("--use", "cuda,convolution=direct", status=1, error="convolution on the CPU")
    assert rows == []


def trace_of(path):
    """Process name: [(name, start, end, thread)] in the order of the file."""
    processes = {}
    for event in json.loads(path.read_text())["traceEvents"]:
        if event["ph"] == "M":
            processes[event["pid"]] = (event["args"]["name"], [])
        else:
            processes[event["pid"]][1].append(
                (event["name"], event["ts"], event["ts"] + event["dur"], event["tid"]))
    return dict(processes.values())


def test_a_trace_has_the_operations_of_a_step_one_after_the_other(step, tmp_path):
    _, rows = step("--use", "simd", "--threads", "1", "--trace", tmp_path / "trace.json")
    [(name, events)] = trace_of(tmp_path / "trace.json").items()
    assert name == "tiny, simd, single, 1 thread"
    assert [event[0] for event in events] == [
        f"{row['layer']} {row['phase']}" for row in rows[:-1]]
    assert events[0][1] == 0 and {event[3] for event in events} == {0}
    for before, after in zip(events, events[1:]):
        assert before[1] < before[2] <= after[1]


def test_a_trace_shows_ranks_beside_each_other(stepladder, mpirun, network, tmp_path):
    stepladder("step", "--network", network, *BRIEF, "--out", tmp_path / "run", "--trace",
               tmp_path / "trace.json", launcher=mpirun(2))
    found = trace_of(tmp_path / "trace.json")
    assert [name.rsplit(", ", 1)[1] for name in found] == ["rank 0", "rank 1"]
    first, second = ([event[0] for event in events] for events in found.values())
    assert first == second and any("all_reduce" in name for name in first)


def test_a_trace_that_cannot_be_written_loses_no_row(step, tmp_path):
    _, rows = step("--use", "simd", "--threads", "1", "--trace", tmp_path / "none/trace.json",
                   status=1, error="none/trace.json")
    assert rows[-1]["layer"] == "total"
