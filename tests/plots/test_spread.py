"""spread.json: how far the ratios of two rungs repeat between runs."""

from __future__ import annotations

import json

import pytest

from plots.__main__ import main
from plots.data import spread
from plots.data.errors import InputError
from plots.data.reading import Row, Run
from run_folder import write_run


def run_of(folder, rows, model="A CPU") -> Run:
    """Rows of one problem: variant, seconds, and optionally its remark."""
    made = [Row(folder,
                {"primitive": "matmul", "suite": "s", "direction": "forward", "problem": "p",
                 "cache": "warm",
                 "precision": "fp32", "device": "cpu", "ranks": 1, "threads": 1, "status": "ok",
                 "variant": variant, "median_s": seconds, "marked": "", "reason": (*remark, "")[0]})
            for variant, seconds, *remark in rows]
    return Run(folder, environment={"cpu_model": model, "started_at": "today"}, summary=made)


def test_a_machine_that_is_slower_as_a_whole_changes_no_ratio(tmp_path):
    one = run_of(tmp_path, [("a", 1e-3), ("b", 2e-3), ("c", 3e-3)])
    other = run_of(tmp_path, [("a", 2e-3), ("b", 4e-3), ("c", 6e-3)])
    assert spread.measure([one, other])["all"] == {"ratios": 3, "median": 0, "95th percentile": 0}


def test_the_change_of_a_ratio_does_not_depend_on_its_direction(tmp_path):
    one = run_of(tmp_path, [("a", 1e-3), ("b", 2e-3)])
    for other in ([("a", 1.1e-3), ("b", 2e-3)], [("a", 1e-3), ("b", 2.2e-3)]):
        found = spread.measure([one, run_of(tmp_path, other)])
        assert found["all"]["median"] == pytest.approx(0.1)


def test_short_rows_do_not_count_and_uncertain_ones_are_apart(tmp_path):
    one = run_of(tmp_path, [("a", 1e-3), ("b", 2e-3), ("noisy", 3e-3), ("short", 49e-6)])
    other = run_of(tmp_path, [("a", 1e-3), ("b", 2e-3), ("noisy", 4e-3,
                                                         "noisy: 95 % interval spans 30 % of the "
                                                         "median"),
                              ("short", 60e-6)])
    found = spread.measure([one, other])
    assert found["all"]["ratios"] == 3 and found["all"]["95th percentile"] == pytest.approx(
        1 / 3, abs=1e-5)
    assert found["certain"] == {"ratios": 1, "median": 0, "95th percentile": 0}


def test_three_runs_are_three_pairs(tmp_path):
    runs = [run_of(tmp_path, [("a", 1e-3), ("b", factor * 1e-3)]) for factor in (1, 1.02, 1.05)]
    found = spread.measure(runs)
    assert found["all"]["ratios"] == 3 and len(found["runs"]) == 3
    assert found["all"]["95th percentile"] == pytest.approx(0.05)


def test_the_command_writes_what_the_page_says(tmp_path, capsys):
    runs = [write_run(tmp_path / name, seed=seed) for seed, name in enumerate(("one", "two"))]
    assert main(["spread", *map(str, runs)]) == 0
    said = capsys.readouterr().out.splitlines()[0]
    assert said.startswith("Measured 2 times: the ratio of two rungs of a problem that take 50 µs "
                           "or more differs")
    assert json.loads((runs[0] / "spread.json").read_text())["all"]["ratios"] > 100
    assert main(["page", str(runs[0])]) == 0
    assert said in (runs[0] / "report.html").read_text()


@pytest.mark.parametrize("rows, model, expected", [
    ([("a", 1e-3), ("b", 1e-3)], "Another CPU", "different machines"),
    ([("a", 1e-3), ("c", 1e-3)], "A CPU", "no two rungs of a problem in common"),
    ([], "A CPU", "has no rows")])
def test_runs_that_cannot_be_compared(tmp_path, rows, model, expected):
    with pytest.raises(InputError, match=expected):
        spread.measure([run_of(tmp_path, [("a", 1e-3), ("b", 2e-3)]),
                        run_of(tmp_path, rows, model)])


def test_one_run_is_not_enough(tmp_path, capsys):
    folder = write_run(tmp_path / "run")
    assert main(["spread", str(folder), str(folder)]) == 2
    assert "expected two different runs or more" in capsys.readouterr().err
