from __future__ import annotations

import json
import re

import pytest

from plots.data.numbers import MISSING
from plots.data.reading import load_run
from plots.data.steps import baseline, configurations, thread_sweep
from plots.data.trainings import split_trainings
from plots.page import first_screen, then_and_now
from run_folder import row, write_documented
from tests import columns


def step(use: str, layer: str, phase: str, seconds: float, threads: int = 1,
         mode: str = "single") -> list[str]:
    return row(columns.STEP, network="mlp", use=use, mode=mode, threads=threads, ranks=1,
               device="cpu", layer=layer, phase=phase, variant=use, median_s=seconds,
               predicted_s=seconds / 2)


def total(use: str, seconds: float, **where) -> list[str]:
    return step(use, "total", "total", seconds, **where)


@pytest.fixture
def configurations_of(run_of):
    def make(*rows):
        return configurations(run_of(step=list(rows)).step)
    return make


def test_rows_of_a_phase_add_up_and_the_total_is_its_own_row(configurations_of):
    found, = configurations_of(step("simd", "fc1", "forward", 1), step("simd", "fc2", "forward", 2),
                               step("simd", "fc1", "backward", 4), total("simd", 8))
    assert found.phase_s("forward") == 3
    assert found.phases == ["forward", "backward"]
    assert (found.total_s, found.predicted_s) == (8, 4)


def test_a_total_has_its_interval_and_the_load_of_the_processors(tmp_path):
    (tmp_path / "columns.json").write_text(columns.JSON)
    write_documented(tmp_path, "step", [
        {"network": "mnist_cnn", "use": "best", "mode": "inter=2", "threads": 2, "ranks": 1,
         "device": "cpu", "layer": "total", "phase": "total", "predicted_s": 0.006,
         "median_s": 0.008, "ci_low_s": 0.0075, "ci_high_s": 0.0082, "processor_load": 93.6}])
    run = load_run(tmp_path)
    found, = thread_sweep(run.step)
    assert found.interval_s == (0.0075, 0.0082) and found.processor_load == 93.6
    assert first_screen.with_interval(found) == "8.00 ms (7.50 to 8.20)"
    ours = then_and_now.table_10(run, json.loads(then_and_now.FILE.read_text())).split(">ours<")[1]
    assert re.findall(r">([^<>\n]+)<", ours)[:6] == ["2", "2", "8.00", "94 %", MISSING, MISSING]


def test_the_steps_of_an_older_run_have_neither(configurations_of):
    found, = configurations_of(total("simd", 8))
    assert found.interval_s is None and found.processor_load is None
    assert first_screen.with_interval(found) == "8000 ms"


def test_an_interrupted_configuration_is_left_out(configurations_of):
    found = configurations_of(total("simd", 3), step("serial", "fc1", "forward", 9))
    assert [c.use for c in found] == ["simd"]


@pytest.mark.parametrize("total_first", [False, True])
def test_the_last_measurement_of_a_configuration_counts(configurations_of, total_first):
    runs = []
    for seconds in (5, 3):
        rows = [step("simd", "fc1", "forward", seconds), total("simd", seconds + 1)]
        runs += reversed(rows) if total_first else rows
    found, = configurations_of(*runs)
    assert found.total_s == 4
    assert found.phase_s("forward") == 3


def test_the_baseline_is_serial_on_the_fewest_threads_or_what_came_first(configurations_of):
    found = configurations_of(total("best", 5, threads=2), total("serial", 12, threads=2),
                              total("serial", 20))
    assert baseline("mlp", found).total_s == 20
    found = configurations_of(total("simd", 5), total("best", 3))
    assert baseline("mlp", found).total_s == 5


def test_a_new_mode_or_a_decreasing_step_starts_another_training():
    rows = [{"mode": mode, "step": number} for mode, number in
            [("single", 1), ("single", 2), ("ring", 1), ("ring", 2), ("single", 1), ("ring", 3)]]
    assert [[row_["step"] for row_ in rows] for rows in split_trainings(rows)] \
        == [[1, 2], [1, 2, 3], [1]]


def test_a_thread_sweep_is_separate_from_the_other_steps(run_of):
    step_rows = run_of(step=[
        total("openmp", 5, threads=2), total("openmp", 4, mode="inter=1"),
        total("openmp", 3, threads=2, mode="inter=2")]).step
    assert [c.total_s for c in configurations(step_rows)] == [5]
    assert [(c.operations_at_once, c.resource.threads, c.total_s)
            for c in thread_sweep(step_rows)] == [(1, 1, 4), (2, 2, 3)]
