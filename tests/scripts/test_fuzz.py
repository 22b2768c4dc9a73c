"""scripts/fuzz.sh: what it says where it cannot fuzz."""

import pytest


@pytest.fixture
def fuzz(sandbox):
    targets = sandbox.root / "tests/fuzz"
    targets.mkdir(parents=True)
    for name in "idx", "network":
        (targets / f"{name}_fuzz.cpp").touch()
    return lambda *arguments: sandbox.run("fuzz.sh", *arguments)


def test_it_says_that_clang_is_missing(fuzz):
    result = fuzz("60", "")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        "make fuzz: clang++ is not on this machine (Debian: clang libclang-rt-dev).\n")


def test_it_says_that_libfuzzer_is_missing(sandbox, fuzz):
    sandbox.fake("clang++", "exit 1")
    result = fuzz("60", "idx")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        "make fuzz: clang++ has no libFuzzer on this machine (Debian: libclang-rt-dev).\n")


@pytest.mark.parametrize("seconds", ["0", "-1", "1.5", "x", ""])
def test_it_expects_whole_seconds(fuzz, seconds):
    result = fuzz(seconds, "")
    assert (result.returncode, result.stdout) == (1, "")
    assert f"SECONDS={seconds}: expected a whole number from 1" in result.stderr


def test_it_lists_the_targets_where_one_is_unknown(fuzz):
    result = fuzz("60", "network,idy")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "make fuzz: unknown TARGET 'idy'; expected some of idx,network\n"
