"""scripts/draw_problems.py: random problems in the form of a suite file."""

import csv
import io
import sys

import pytest

from tests.commands import ROOT, execute, read_csv


def draw(*arguments, **expected):
    done = execute(sys.executable, ROOT / "scripts/draw_problems.py", *arguments, **expected)
    return list(csv.DictReader(io.StringIO(done.stdout)))


@pytest.mark.parametrize("primitive", ["matmul", "convolution"])
def test_the_suite_random_was_drawn_with_seed_1(primitive):
    suite = [row for row in read_csv(ROOT / f"bench/suites/{primitive}.csv")
             if row["suite"] == "random"]
    drawn = draw(primitive, "--count", len(suite))
    assert len(suite) == 60
    assert [{column: row[column] for column in drawn[0]} for row in suite] == drawn


@pytest.mark.parametrize("primitive", ["matmul", "convolution"])
def test_another_seed_draws_other_problems_with_names_of_their_own(primitive):
    first = draw(primitive, "--seed", "1")
    second = draw(primitive, "--seed", "2", "--count", "50")
    assert len(second) == 50 and len({row["name"] for row in second}) == 50
    assert {row["name"] for row in first} != {row["name"] for row in second}
    assert {row["source"] for row in second} == {"drawn log-uniformly; seed 2"}


def test_the_sizes_of_products_are_spread_over_the_decades():
    rows = draw("matmul", "--count", "300")
    sizes = [int(row[side]) for row in rows for side in "mnk"]
    assert min(sizes) < 4 and max(sizes) > 2000 and max(sizes) <= 4096
    for row in rows:
        assert 1e4 <= 2 * int(row["m"]) * int(row["n"]) * int(row["k"]) <= 2e10
    transposed = {(row["transpose_a"], row["transpose_b"]) for row in rows}
    assert transposed == {("0", "0"), ("0", "1"), ("1", "0")}


def test_a_primitive_that_it_does_not_know_is_one_sentence():
    draw("max_pool", status=2, error="invalid choice: 'max_pool'")
