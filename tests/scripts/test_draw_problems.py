"""scripts/draw_problems.py: random problems in the form of a suite file."""

import csv
import io
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def draw(*arguments):
    done = subprocess.run([sys.executable, ROOT / "scripts/draw_problems.py", *arguments],
                          capture_output=True, text=True, check=False)
    return done.returncode, list(csv.DictReader(io.StringIO(done.stdout))), done.stderr


@pytest.mark.parametrize("primitive", ["matmul", "convolution"])
def test_the_suite_random_was_drawn_with_seed_1(primitive):
    with open(ROOT / "bench/suites" / f"{primitive}.csv", newline="") as file:
        suite = [row for row in csv.DictReader(file) if row["suite"] == "random"]
    status, drawn, _ = draw(primitive, "--count", str(len(suite)))
    assert status == 0 and len(suite) == 60
    assert [{column: row[column] for column in drawn[0]} for row in suite] == drawn


@pytest.mark.parametrize("primitive", ["matmul", "convolution"])
def test_another_seed_draws_other_problems_with_names_of_their_own(primitive):
    _, first, _ = draw(primitive, "--seed", "1")
    _, second, _ = draw(primitive, "--seed", "2", "--count", "50")
    assert len(second) == 50 and len({row["name"] for row in second}) == 50
    assert {row["name"] for row in first} != {row["name"] for row in second}
    assert {row["source"] for row in second} == {"drawn log-uniformly; seed 2"}


def test_the_sizes_of_products_are_spread_over_the_decades():
    _, rows, _ = draw("matmul", "--count", "300")
    sizes = [int(row[side]) for row in rows for side in "mnk"]
    assert min(sizes) < 4 and max(sizes) > 2000 and max(sizes) <= 4096
    for row in rows:
        assert 1e4 <= 2 * int(row["m"]) * int(row["n"]) * int(row["k"]) <= 2e10
    transposed = {(row["transpose_a"], row["transpose_b"]) for row in rows}
    assert transposed == {("0", "0"), ("0", "1"), ("1", "0")}


def test_a_primitive_that_it_does_not_know_is_one_sentence():
    status, _, error = draw("max_pool")
    assert status == 2 and "invalid choice: 'max_pool'" in error
