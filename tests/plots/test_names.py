from __future__ import annotations

import random

import pytest

from plots.data.names import (
    Rung,
    isa_width,
    ladder_order,
    resolve_builds_on,
    split_isa,
    technique_in_name,
    widest_builds,
)


@pytest.mark.parametrize("name, family, isa", [
    ("simd_avx512", "simd", "avx512"), ("packed_openmp_sse42", "packed_openmp", "sse42"),
    ("blocked", "blocked", ""), ("avx2", "avx2", ""), ("serial_ijk", "serial_ijk", "")])
def test_only_a_known_suffix_is_an_instruction_set(name, family, isa):
    assert split_isa(name) == (family, isa)


def test_instruction_sets_are_ordered_by_width():
    assert isa_width("simd") < isa_width("simd_sse42") < isa_width("simd_avx2") \
        < isa_width("simd_avx512")


@pytest.mark.parametrize("present, expected", [
    (["simd_sse42", "simd_avx512", "simd_avx2"], "simd_avx512"),
    (["simd_sse42", "simd_avx2"], "simd_avx2"),
    (["simd_sse42"], "simd_sse42"),
    (["simd", "simd_avx2"], "simd"),
    (["blocked"], None)])
def test_a_family_name_means_its_widest_build(present, expected):
    assert resolve_builds_on(Rung("openmp", "openmp", "simd"), present) == expected


def test_a_build_builds_on_the_build_for_the_same_instruction_set():
    present = ["simd_sse42", "simd_avx2", "simd_avx512"]
    assert resolve_builds_on(Rung("packed_avx2", "simd", "simd"), present) == "simd_avx2"


def test_a_first_rung_builds_on_nothing():
    assert resolve_builds_on(Rung("serial", "serial", ""), ["simd", ""]) is None


def test_the_widest_build_of_every_family():
    names = ["serial", "simd_sse42", "simd_avx2", "openmp_avx2", "openmp_sse42", "openblas"]
    widest = widest_builds([Rung(name, "", "") for name in names])
    assert [rung.name for rung in widest] == ["serial", "simd_avx2", "openmp_avx2", "openblas"]


RUNGS = [
    Rung("serial", "serial", ""), Rung("blocked", "serial", "serial"),
    Rung("simd_sse42", "simd", "blocked"), Rung("simd_avx512", "simd", "blocked"),
    Rung("openmp", "openmp", "simd"), Rung("pthread", "pthread", "simd"),
    Rung("openblas", "vendor", ""), Rung("naive", "cuda", "serial"),
    Rung("cublas", "vendor", "", "H200")]


def test_ladder_order_does_not_depend_on_the_order_of_the_file():
    for seed in range(20):
        shuffled = random.Random(seed).sample(RUNGS, len(RUNGS))
        assert ladder_order(shuffled) == RUNGS


def test_a_cycle_of_rungs_still_has_an_order():
    rungs = [Rung("a", "serial", "b"), Rung("b", "serial", "a")]
    assert sorted(ladder_order(rungs)) == sorted(rungs)


@pytest.mark.parametrize("name, technique", [
    ("simd_openmp", "openmp"), ("serial", "serial"), ("mpi_rows", "mpi"), ("fused", "")])
def test_the_technique_in_a_name_is_its_last_such_word(name, technique):
    assert technique_in_name(name) == technique
