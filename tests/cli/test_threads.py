"""Where OpenMP or the container give fewer threads than are asked for, no row claims more."""

import functools
import json
import os

import pytest

from conftest import QUICK
from tests.commands import read_csv

LIMITS = {
    "thread limit": ({
        "OMP_THREAD_LIMIT": "1"}, [], "2 threads do not run: OMP_THREAD_LIMIT allows 1"),
    "no parallel regions": ({
        "OMP_MAX_ACTIVE_LEVELS": "0"}, [], "2 threads do not run: OpenMP started 1"),
    "one processor": ({}, ["taskset", "-c", str(min(
        os.sched_getaffinity(0)))], "2 threads do not run: this process may run on 1 processor"), }


@pytest.fixture(params=LIMITS, ids=lambda name: name.replace(" ", "-"))
def limited(request, stepladder):
    """The program under a limit, and the reason that it gives."""
    environment, launcher, reason = LIMITS[request.param]
    if len(os.sched_getaffinity(0)) < 2 and not launcher:
        reason = LIMITS["one processor"][2]
    unbound = {"OMP_PROC_BIND": None, "OMP_PLACES": None}
    return functools.partial(stepladder, launcher=launcher, environment={**unbound,
                                                                         **environment}), reason


def test_rows_and_ceilings_have_the_threads_that_ran(limited, tmp_path):
    program, reason = limited
    run = tmp_path / "run"
    done = program("bench", "matmul", "--shape", "64x64x64", "--variant",
                   "simd_sse42,openmp_sse42,openblas", *QUICK[2:], "--threads", "1,2", "--out", run)
    rows = {(row["variant"], row["threads"]): row for row in read_csv(run / "summary.csv")}
    assert rows["openmp_sse42", "1"]["status"] == "ok"
    assert rows["openmp_sse42", "2"]["status"] == "unavailable"
    assert rows["openmp_sse42", "2"]["reason"] == reason
    assert all(
        row["status"] == "unavailable" for (_, threads), row in rows.items() if threads == "2")
    assert {c["threads"] for c in json.loads((run / "ceilings.json").read_text())["ceilings"]} <= {
        1}
    assert f"No ceilings: {reason}" in done.stderr


def test_verify_says_why_two_threads_are_not_verified(limited):
    program, reason = limited
    done = program("verify", "matmul", "--shape", "64x64x64", "--variant", "openmp_sse42",
                   "--threads", "1,2")
    shared = "1 processor" in reason  # two threads run on it: right or wrong, if not fast
    assert f"{4 if shared else 2} checks passed, 0 failed" in done.stdout, done.stdout
    assert ("1 unavailable" in done.stdout) != shared


def test_a_step_leaves_them_out(limited, tmp_path):
    program, reason = limited
    done = program("step", "--network", "mlp", "--threads", "1,2", "--out", tmp_path / "run",
                   "--use", "serial", "--budget", "0.05")
    assert f"left out: {reason}" in done.stderr
    assert {row["threads"] for row in read_csv(tmp_path / "run/step.csv")} == {"1"}


def test_a_training_says_why_it_does_not_start(limited, tmp_path):
    program, reason = limited
    program("train", "--network", "mlp", "--threads", "2", "--out", tmp_path / "run", status=1,
            error=reason)


def test_teams_are_as_large_as_asked_for(stepladder, monkeypatch, tmp_path):
    """With OMP_DYNAMIC a team would have fewer threads while the machine is busy."""
    monkeypatch.setenv("OMP_DYNAMIC", "true")
    run = tmp_path / "run"
    stepladder("bench", "matmul", "--shape", "64x64x64", "--variant", "simd_sse42", *QUICK, "--out",
               run)
    assert json.loads((run / "environment.json").read_text())["affinity"]["OMP_DYNAMIC"] == "false"
