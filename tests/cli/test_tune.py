"""tune: the measured choices of best, in a file for step and train."""

import json

import pytest

from conftest import TINY_NETWORK
from tests.commands import read_csv, write_csv

BRIEF = ("--repetitions", "3", "--budget", "0.005")


@pytest.fixture
def tuned(stepladder, network, tmp_path):
    path = tmp_path / "tuned.csv"
    stepladder("tune", "--network", network, "--threads", "1", *BRIEF, "--out", path)
    return path


def rewrite(path, **values):
    write_csv(path, [row | values for row in read_csv(path)])


def step(stepladder, network, tuned, run, **expected):
    stepladder("step", "--network", network, *BRIEF, "--threads", "1", "--tuned", tuned, "--out",
               run, **expected)


def test_there_is_a_choice_for_each_problem_of_the_network_that_several_rungs_take(tuned):
    chosen = {(row["problem"].split()[0], row["problem"].split()[1]) for row in read_csv(tuned)}
    assert {("matmul", "forward"), ("matmul", "backward_data"), ("matmul", "backward_weights"),
            ("convolution", "forward"), ("convolution", "backward_weights")} <= chosen
    assert all(float(row["median_s"]) > 0 for row in read_csv(tuned))


def test_a_step_runs_what_the_file_says(stepladder, network, tuned, tmp_path):
    rows = read_csv(tuned)
    forward = next(row for row in rows if row["problem"].startswith("matmul forward"))
    family, isa = forward["variant"].rsplit("_", 1)
    forward["variant"] = ("packed" if family == "openmp" else "openmp") + "_" + isa
    write_csv(tuned, rows)
    run = tmp_path / "run"
    step(stepladder, network, tuned, run)
    fc = next(row for row in read_csv(run / "step.csv")
              if row["layer"] == "fc" and row["phase"] == "forward")
    assert fc["variant"] == forward["variant"]


def test_choices_of_other_networks_stay(stepladder, tuned, tmp_path):
    before = {row["problem"] for row in read_csv(tuned)}
    wider = json.loads(json.dumps(TINY_NETWORK))
    wider["layers"][0]["filters"] = 5
    path = tmp_path / "wider.json"
    path.write_text(json.dumps(wider))
    stepladder("tune", "--network", path, "--threads", "1", *BRIEF, "--out", tuned)
    assert before < {row["problem"] for row in read_csv(tuned)}


@pytest.mark.parametrize("command", ["step", "train", "tune"])
def test_a_file_of_another_machine_is_refused(stepladder, network, tuned, tmp_path, command):
    rewrite(tuned, machine="Analytical Engine")
    where = ("--out", tuned) if command == "tune" else ("--tuned", tuned, "--out", tmp_path / "run")
    stepladder(command, "--network", network, *where, status=1,
               error=("Analytical Engine", "stepladder tune"))
    assert all(row["machine"] == "Analytical Engine" for row in read_csv(tuned))


def test_a_choice_that_is_no_rung_is_refused(stepladder, network, tuned, tmp_path):
    rewrite(tuned, variant="quantum")
    step(stepladder, network, tuned, tmp_path / "run", status=1,
         error=("quantum", "stepladder tune"))
