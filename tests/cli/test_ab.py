"""make ab: turns, budgets, what is merged, and its verdicts on programs whose times are known."""

import json
import random
import sys

import pytest

import ab
from tests.columns import documented
from tests.commands import ROOT, execute, read_csv, write_csv, write_script

# Times of two problems of one rung: a drift of the machine between processes, noise, and the
# program's own factor.
FAKE = """#!{python}
import csv, os, pathlib, random, sys
log, factor, seed, sigma = pathlib.Path({log!r}), {factor}, {seed}, {sigma}
if sys.argv[1] == "compare":
    os.execv({program!r}, [{program!r}, *sys.argv[1:]])
calls = log.read_text().splitlines() if log.exists() else []
log.write_text("\\n".join([*calls, {name!r} + " " + " ".join(sys.argv[1:])]) + "\\n")
draw = random.Random(f"{{seed}} {{len(calls)}}")
drift = 1 + 0.3 * ((len(calls) // 2) % 3)  # of a pair
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
(out / "ceilings.json").write_text("{{}}")
names = {columns!r}
with open(out / "samples.csv", "w", newline="") as file:
    writer = csv.DictWriter(file, names, restval="", lineterminator="\\n")
    writer.writeheader()
    for problem in ("one", "two"):
        process = draw.gauss(0, sigma)
        for repetition in range(5):
            seconds = 1e-4 * drift * factor * (1 + process + draw.gauss(0, sigma))
            writer.writerow(dict(primitive="matmul", direction="forward", variant="packed",
                                 problem=problem, threads=1, ranks=1, repetition=repetition,
                                 visit=repetition // 3, seconds=seconds,
                                 marked="disturbed" if repetition == 4 else ""))
with open(out / "summary.csv", "w") as file:
    file.write("primitive,direction,problem,threads,ranks,variant,status,reason\\n")
    for problem in ("one", "two"):
        file.write(f"matmul,forward,{{problem}},1,1,packed,{status},it is wrong\\n")
sys.exit(0 if {status!r} == "ok" else 1)
"""


@pytest.fixture(scope="module")
def columns():
    return list(documented("samples"))


@pytest.fixture
def program(tmp_path, columns, program_path):
    def make(name, factor=1.0, seed=1, sigma=0.004, status="ok"):
        return write_script(tmp_path / name / "stepladder", FAKE.format(
            python=sys.executable, log=str(tmp_path / "log"), factor=factor, seed=seed,
            sigma=sigma, program=str(program_path), columns=columns, name=name, status=status))
    return make


def run(base, new, *more, limit=0.5, **expected):
    return execute(sys.executable, ROOT / "scripts/ab.py", "--base", base, "--program", new,
                   "--limit", limit, *more, "--", "matmul", "--suite", "quick", **expected)


def test_a_slower_program_is_found_and_the_order_rotates(program, tmp_path):
    old, new = program("old"), program("new", factor=1.03)
    done = run(old.parent, new, "--out", tmp_path / "kept", status=1)
    assert "matmul forward one packed t1 r1" in done.stdout and done.stdout.count(
        "SLOWER") == 3  # two rows, one rung
    calls = [line.split()[0] for line in (tmp_path / "log").read_text().splitlines()]
    assert calls[:12] == ["old", "new"] * 2 + ["old", "new", "new", "old"] * 2
    lines = (tmp_path / "log").read_text().splitlines()
    assert all("bench matmul --suite quick --budget" in line for line in lines)
    assert all("--resume" in line for line in lines[2:]) and not any("--resume" in line
                                                                     for line in lines[:2])
    # The repetitions are kept: the pair is the visit, those that were disturbed are left out.
    rows = read_csv(tmp_path / "kept/old/samples.csv")
    assert {row["visit"] for row in rows} >= {"0", "1", "2", "3", "4"}
    assert all(row["marked"] == "" for row in rows)
    assert sum(row["visit"] == "0" for row in rows) == 8
    run(old.parent, new, "--out", tmp_path / "kept", status=2, error="is there already")


def test_a_program_against_itself_is_the_same(program):
    done = run(program("old").parent, program("new"))
    assert "0 slower, 0 faster, 2 the same within 2 %, 0 cannot be told" in done.stdout


def test_a_rung_that_fails_in_the_new_program_is_an_error(program):
    run(program("old").parent, program("new", status="failed"), status=1,
        error="make ab: FAILED: all of 2 rows; packed: it is wrong")


def test_what_is_no_program_is_refused(program, tmp_path):
    new = program("new")
    run("no-such-commit", new, status=2, error="neither a commit nor a build folder")
    (tmp_path / "empty").mkdir()
    run(tmp_path / "empty", new, status=2, error="holds no program stepladder")
    run(new.parent, new, limit=0, status=2, error="expected seconds above 0")
    new.write_text("#!/bin/sh\necho no suite >&2; exit 3\n")
    run(new.parent, new, status=2, error="ended with status 3: no suite")


def test_the_budget_fills_the_time():
    # A process of 2 rows took 0.5 s, 0.47 of them beside the rows; 20 pairs in 120 s are 3 s for
    # each process.
    assert ab.budget_of(120, 0.5, 2) == ab.MOST_BUDGET
    assert ab.budget_of(120, 1.0, 30) == pytest.approx((3 - (1 - 30 * 0.015)) / 45)
    assert ab.budget_of(120, 10, 500) == ab.FIRST_BUDGET  # too many rows


def test_a_row_that_was_mostly_disturbed_keeps_all(tmp_path, columns):
    write_csv(tmp_path / "samples.csv", [
        {"primitive": "matmul", "variant": variant, "repetition": i, "seconds": 1, "marked": mark}
        for variant, marks in (("a", ["", "x", "x"]), ("b", ["", "", "x"]))
        for i, mark in enumerate(marks)], columns)
    found = list(ab.repetitions(tmp_path, 7))
    assert [row["variant"] for row in found] == ["a"] * 3 + ["b"] * 2
    assert {(row["visit"], row["marked"]) for row in found} == {(7, "")}
    assert [row["repetition"] for row in found if row["variant"] == "b"] == [70_000, 70_001]


def write_runs(folder, columns, draw, factor, pairs=18, sigma=0.02):
    """Pairs of processes that differ by 2 %, of six rows of three problems."""
    machine = [draw.gauss(0, 0.1) for _ in range(pairs)]
    for side, slower in (("old", 1.0), ("new", factor)):
        (folder / side).mkdir(parents=True)
        write_csv(folder / side / "samples.csv", [
            {"primitive": "matmul", "direction": "forward", "variant": variant,
             "problem": problem, "threads": 1, "ranks": 1, "repetition": pair, "visit": pair,
             "seconds": abs((1 + machine[pair]) * (1 + draw.gauss(0, sigma))
                            * (slower if variant == "a" else 1))}
            for pair in range(pairs) for variant in "ab" for problem in "pqr"], columns)


@pytest.mark.parametrize("factor", [1.0, 1.03])
def test_three_percent_are_found_and_equal_programs_are_not_different(tmp_path, columns, stepladder,
                                                                      factor):
    draw, called, wrong = random.Random(1), 0, 0
    for trial in range(100):
        folder = tmp_path / str(trial)
        write_runs(folder, columns, draw, factor)
        done = stepladder("compare", folder / "old", folder / "new", "--paired", *ab.JUDGED,
                          "--json", status=None)
        result = json.loads(done.stdout)
        verdicts = {(row["variant"], row["verdict"]) for row in result["rows"] + result["rungs"]}
        called += ("a", "slower") in verdicts
        wrong += bool(verdicts & {("a", "faster"), ("b", "slower"), ("b", "faster")})
    print(f"factor {factor}: called slower {called}, wrong {wrong} of 100")
    assert called >= 95 if factor > 1 else called <= 5
    assert wrong <= 5
