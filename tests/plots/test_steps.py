from __future__ import annotations

import pytest
from run_folder import row, write_csv

from plots.reading import load_run
from plots.steps import baseline, configurations, thread_sweep
from plots.trainings import split_trainings
from tests import columns


def step(use: str, layer: str, phase: str, seconds: float, threads: int = 1,
         mode: str = "single") -> list[str]:
    return row(columns.STEP, network="mlp", use=use, mode=mode, threads=threads, ranks=1,
               device="cpu", layer=layer, phase=phase, variant=use, median_s=seconds,
               predicted_s=seconds / 2)


def total(use: str, seconds: float, **where) -> list[str]:
    return step(use, "total", "total", seconds, **where)


@pytest.fixture
def configurations_of(tmp_path):
    def make(*rows):
        write_csv(tmp_path, columns.STEP, list(rows))
        return configurations(load_run(tmp_path).step)
    return make


def test_rows_of_a_phase_add_up_and_the_total_is_its_own_row(configurations_of):
    found, = configurations_of(step("simd", "fc1", "forward", 1), step("simd", "fc2", "forward", 2),
                               step("simd", "fc1", "backward", 4), total("simd", 8))
    assert found.phase_s("forward") == 3
    assert found.phases == ["forward", "backward"]
    assert (found.total_s, found.predicted_s) == (8, 4)


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


def test_a_thread_sweep_is_separate_from_the_other_steps(tmp_path):
    write_csv(tmp_path, columns.STEP, [
        total("openmp", 5, threads=2), total("openmp", 4, mode="inter=1"),
        total("openmp", 3, threads=2, mode="inter=2")])
    step_rows = load_run(tmp_path).step
    assert [c.total_s for c in configurations(step_rows)] == [5]
    assert [(c.operations_at_once, c.resource.threads, c.total_s)
            for c in thread_sweep(step_rows)] == [(1, 1, 4), (2, 2, 3)]
