"""scripts/fuzz.sh: what it says where it cannot fuzz."""

import pytest


@pytest.fixture
def fuzz(sandbox):
    targets = sandbox.root / "tests/fuzz"
    targets.mkdir(parents=True)
    for name in "idx", "network":
        (targets / f"{name}_fuzz.cpp").touch()

    def refused(*arguments):
        """What it says, in one line."""
        done = sandbox.run("fuzz.sh", *arguments, status=1, lines=1)
        assert done.stdout == ""
        return done.stderr

    return refused


def test_it_says_that_clang_is_missing(fuzz):
    assert fuzz("60", "") == (
        "make fuzz: clang++ is not on this machine (Debian: clang libclang-rt-dev).\n")


def test_it_says_that_libfuzzer_is_missing(sandbox, fuzz):
    sandbox.fake("clang++", "exit 1")
    assert fuzz("60", "idx") == (
        "make fuzz: clang++ has no libFuzzer on this machine (Debian: libclang-rt-dev).\n")


@pytest.mark.parametrize("seconds", ["0", "-1", "1.5", "x", ""])
def test_it_expects_whole_seconds(fuzz, seconds):
    assert f"SECONDS={seconds}: expected a whole number from 1" in fuzz(seconds, "")


def test_it_lists_the_targets_where_one_is_unknown(fuzz):
    assert fuzz("60", "network,idy") == (
        "make fuzz: unknown TARGET 'idy'; expected some of idx,network\n")
