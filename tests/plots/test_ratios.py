from __future__ import annotations

import itertools
import math
import random
import statistics

import pytest

from plots.data.names import Rung
from plots.data.ratios import (
    Ratio,
    Resource,
    first_and_last,
    geometric_mean,
    mean_ratio,
    rate_bounds,
)
from plots.data.reading import load_run
from plots.data.samples import (
    Samples,
    Time,
    median_over_visits,
    median_with_interval,
    read_samples,
    usual_spreads,
)
from run_folder import row, summary_row
from tests import columns
from tests.commands import ROOT

ONE = Resource("", 1, 1)
TWO = Resource("", 1, 2)


def rung(ladder, name: str) -> Rung:
    return next(r for r in ladder.rungs if r.name == name)


def values(ratios) -> list[float]:
    return sorted(ratio.value for ratio in ratios)


def test_geometric_mean():
    assert geometric_mean([]) is None
    assert geometric_mean([2, 8]) == pytest.approx(4)
    assert geometric_mean([5]) == pytest.approx(5)


def test_the_mean_of_ratios_is_the_ratio_of_means():
    noise = random.Random(3)
    slow = [noise.uniform(1, 9) for _ in range(12)]
    fast = [noise.uniform(1, 9) for _ in range(12)]
    mean = mean_ratio([Ratio(s / f, s / f, s / f) for s, f in zip(slow, fast)])
    assert mean.value == pytest.approx(geometric_mean(slow) / geometric_mean(fast))
    assert mean.low == mean.value == mean.high
    assert mean.count == 12


def test_bounds_of_a_mean_shrink_with_the_number_of_problems():
    one = mean_ratio([Ratio(2, 1, 4)])
    assert (one.low, one.high) == (pytest.approx(1), pytest.approx(4))
    four = mean_ratio([Ratio(2, 1, 4)] * 4)
    assert four.low == pytest.approx(2 / math.sqrt(2))
    assert four.high == pytest.approx(2 * math.sqrt(2))


def test_gain_is_paired_by_problem_and_direction(ladder_of):
    ladder = ladder_of([
        summary_row("serial", 8.0, problem="a"), summary_row("serial", 30.0, problem="b"),
        summary_row("serial", 1.0, problem="a", direction="backward_data"),
        summary_row("blocked", 4.0, problem="a", builds_on="serial"),
        summary_row("blocked", 10.0, problem="b", builds_on="serial"),
        summary_row("blocked", 7.0, problem="only blocked has it", builds_on="serial"),
        summary_row("blocked", 0.1, problem="a", direction="backward_data", builds_on="serial")])
    blocked = rung(ladder, "blocked")
    assert values(ladder.gains(blocked, "forward", ONE)) == pytest.approx([2, 3])
    assert values(ladder.gains(blocked, "backward_data", ONE)) == pytest.approx([10])
    assert values(ladder.gains(blocked, None, ONE)) == pytest.approx([2, 3, 10])
    assert ladder.gains(rung(ladder, "serial"), "forward", ONE) == []


def test_gain_over_a_family_is_over_its_widest_measured_build(ladder_of):
    ladder = ladder_of([
        summary_row("simd_sse42", 16.0, technique="simd"),
        summary_row("simd_avx2", 8.0, technique="simd"),
        summary_row("simd_avx512", 0, technique="simd", status="unavailable", median_s=""),
        summary_row("openmp", 4.0, technique="openmp", builds_on="simd")])
    openmp = rung(ladder, "openmp")
    assert ladder.base_of(openmp).name == "simd_avx2"
    assert values(ladder.gains(openmp, "forward", ONE)) == pytest.approx([2])


def test_two_threads_are_compared_with_two_or_else_with_one(ladder_of):
    ladder = ladder_of([
        summary_row("simd", 12.0, technique="simd"),
        summary_row("openmp", 13.0, builds_on="simd"),
        summary_row("openmp", 6.0, builds_on="simd", threads=2),
        summary_row("packed_openmp", 2.0, builds_on="openmp", threads=2)])
    assert values(ladder.gains(rung(ladder, "openmp"), "forward", TWO)) == pytest.approx([2])
    assert values(ladder.gains(rung(ladder, "packed_openmp"), "forward", TWO)) \
        == pytest.approx([3])


def test_rows_without_a_time_do_not_count_and_the_last_of_equal_rows_does(ladder_of):
    ladder = ladder_of([
        summary_row("serial", 10.0), summary_row("serial", 8.0),
        summary_row("fast", 0, status="failed", median_s="", builds_on="serial"),
        summary_row("fast", 2.0, builds_on="serial"),  # --resume measured it again
        summary_row("fast", 0, problem="q", status="ok", median_s="nan", builds_on="serial")])
    assert values(ladder.gains(rung(ladder, "fast"), "forward", ONE)) == pytest.approx([4])
    assert [row_["status"] for row_ in ladder.rows] == ["ok"] * 3


def test_speedup_is_the_column_with_the_spread_of_both_rows(ladder_of):
    ladder = ladder_of([
        summary_row("serial", 8.0, ci_low_s=8.0, ci_high_s=16.0, speedup_vs_serial=1),
        summary_row("fast", 2.0, ci_low_s=1.0, ci_high_s=2.0, builds_on="serial",
                    speedup_vs_serial=4.5)])
    assert ladder.baseline == "serial"
    ratio, = ladder.speedups(rung(ladder, "fast"), "forward", ONE)
    assert ratio.value == 4.5
    assert ratio.low == pytest.approx(4.5)
    assert ratio.high == pytest.approx(4.5 * 2 ** math.sqrt(2))


def test_without_a_serial_rung_the_first_rung_is_the_baseline(ladder_of):
    ladder = ladder_of([
        summary_row("gather", 9.0, technique="mpi", ranks=4, ci_low_s=7, ci_high_s=11),
        summary_row("ring", 3.0, technique="mpi", ranks=4, builds_on="gather"),
        summary_row("mpi_allreduce", 4.5, technique="vendor", ranks=4)])
    four = Resource("", 4, 1)
    assert ladder.baseline == "gather"
    assert ladder.speedups(rung(ladder, "gather"), "forward", four) == [(1, 1, 1)]
    assert values(ladder.speedups(rung(ladder, "ring"), "forward", four)) == pytest.approx([3])
    assert values(ladder.speedups(rung(ladder, "mpi_allreduce"), "forward", four)) \
        == pytest.approx([2])


def sample(variant: str, repetition: int, seconds: float, marked: str = "") -> list[str]:
    return row(columns.SAMPLES, primitive="matmul", direction="forward", variant=variant,
               problem="p", threads=1, ranks=1, repetition=repetition, seconds=seconds,
               marked=marked)


def test_repetitions_of_one_round_are_compared_with_each_other(ladder_of):
    """A machine that slows down by the round leaves the ratio of the rounds alone."""
    summary = [summary_row("serial", 1.0), summary_row("fast", 1.0, builds_on="serial")]
    drift = [1.0, 5.0, 2.0, 9.0, 3.0]
    samples = [sample(variant, i, drift[i] * seconds) for i in range(5)
               for variant, seconds in (("serial", 6.0), ("fast", 2.0))]
    samples.append(sample("fast", 5, 99.0))
    samples += [sample("serial", 6, 1.0), sample("fast", 6, 700.0, marked="disturbed")]
    ladder = ladder_of(summary, samples)
    ratio, = ladder.gains(rung(ladder, "fast"), "forward", ONE)
    assert ratio == pytest.approx((3, 3, 3))


def test_too_few_or_ambiguous_rounds_leave_the_ratio_of_medians(ladder_of):
    summary = [summary_row("serial", 6.0), summary_row("fast", 2.0, builds_on="serial")]
    few = [sample(v, i, 1.0) for i in range(2) for v in ("serial", "fast")]
    ladder = ladder_of(summary, few)
    assert values(ladder.gains(rung(ladder, "fast"), "forward", ONE)) == pytest.approx([3])
    twice = [sample(v, i % 4, 1.0) for i in range(8) for v in ("serial", "fast")]
    ladder = ladder_of(summary, twice)
    assert values(ladder.gains(rung(ladder, "fast"), "forward", ONE)) == pytest.approx([3])


def test_interval_of_a_median_by_order_statistics():
    assert median_with_interval([3, 1, 2]) == (2, 1, 3)
    # Ranks for 95 % from the tables of the sign test: 1 of 6, 2 of 9, 6 of 20.
    assert median_with_interval(range(1, 7)) == (3.5, 1, 6)
    assert median_with_interval(range(1, 10)) == (5, 2, 8)
    assert median_with_interval(range(1, 21)) == (10.5, 6, 15)


def test_interval_of_a_median_covers_it_often_enough():
    noise = random.Random(7)
    covered = 0
    for _ in range(1000):
        _, low, high = median_with_interval([noise.random() for _ in range(11)])
        covered += low <= 0.5 <= high
    assert covered >= 935


def test_paired_ratio_needs_common_rounds():
    one = {i: Time(1.0, 0) for i in range(3)}
    assert Samples({("a",): one, ("b",): one}).paired_ratio(("a",), ("b",)) == (1, 1, 1)
    other = {i: Time(1.0, 0) for i in range(3, 6)}
    assert Samples({("a",): one, ("b",): other}).paired_ratio(("a",), ("b",)) is None


def test_rows_disturbed_alike_share_a_spread():
    """Visits to rows on two threads differ by 10 %, to rows on one by 1 %; two rows of another
    primitive are too few for a spread of their own."""
    def rounds(d: float) -> dict:
        return {0: Time(1.0, 0), 1: Time(math.exp(d), 1)}
    rows = {("p", "", "v", i, threads, 1): rounds(0.1 if threads == 2 else 0.01)
            for i in range(20) for threads in (1, 2)}
    rows |= {("q", "", "v", i, 1, 1): rounds(5.0) for i in range(2)}
    samples = Samples(rows, usual_spreads(rows))
    one, two, other = (samples.usual_spread(key) for key in
                       (("p", "", "v", 0, 1, 1), ("p", "", "v", 0, 2, 1), ("q", "", "v", 0, 1, 1)))
    assert one == pytest.approx(0.01 / 1.8119 / math.sqrt(2))
    assert two == pytest.approx(10 * one)
    assert other == samples.usual_spreads[()] == pytest.approx(two)
    assert samples.usual_spread(("r", "", "v", 0, 8, 1)) == other
    assert Samples({}).usual_spread(("p",)) == 0


def test_the_interval_over_visits_is_that_of_the_formula():
    """As in tests/harness/measure/statistics_test.cpp."""
    d, usual = 0.2, 0.1
    value, low, high = median_over_visits([[1, 1, 1], [math.exp(d)] * 3], usual)
    width = 2.36462 * math.sqrt((6 * usual ** 2 + d ** 2 / 2) / 7) / math.sqrt(2)
    assert math.log(high / value) == pytest.approx(width, rel=1e-3) == math.log(value / low)
    assert median_over_visits([[1, 2, 3]], usual) == median_with_interval([1, 2, 3])
    assert median_over_visits([[1, 2, 3]] * 2, 0) == median_with_interval([1, 2, 3] * 2)


PUBLISHED = sorted(file.parent for file in (ROOT / "results").rglob("samples.csv.gz")
                   if not file.is_relative_to(ROOT / "results/local"))


def ratios_of_neighbours(samples):
    """Of every two rungs that are neighbours by name, on each problem: the rounds that both
    have."""
    problems = {}
    for key in sorted(samples.rounds):
        problems.setdefault((*key[:2], *key[3:]), []).append(key)
    for keys in problems.values():
        yield from itertools.pairwise(keys)


def test_ratios_of_published_runs_cover_what_the_next_visit_gave():
    runs = 0
    for folder in PUBLISHED:
        samples = read_samples(load_run(folder, ("samples",)).samples)
        outside = old_outside = count = 0
        for a, b in ratios_of_neighbours(samples):
            common = {i for i in samples.rounds[a] if i in samples.rounds[b]}
            visits = sorted({samples.rounds[a][i].visit for i in common})
            if len(visits) < 3:
                continue
            former = {i: t for i, t in samples.rounds[a].items() if i in common
                      and t.visit != visits[-1]}
            if len(former) < 6:
                continue
            _, low, high = Samples({a: former, b: samples.rounds[b]},
                                   samples.usual_spreads).paired_ratio(a, b)
            _, old_low, old_high = median_with_interval([t.seconds / samples.rounds[b][i].seconds
                                                         for i, t in former.items()])
            following = statistics.median(
                samples.rounds[a][i].seconds / samples.rounds[b][i].seconds
                for i in common if i not in former)
            count += 1
            outside += not low <= following <= high
            old_outside += not old_low <= following <= old_high
        if count < 500:
            continue
        runs += 1
        print(f"{folder.relative_to(ROOT)}: {count} ratios, outside {outside}, of pooled "
              f"repetitions {old_outside}")
        assert outside <= 0.12 * count, folder
        assert outside < 0.6 * old_outside, folder
    assert runs >= 3


def test_rates_are_high_where_times_are_low():
    row_ = {"median_s": 2.0, "ci_low_s": 1.0, "ci_high_s": 8.0}
    assert rate_bounds(row_, 100) == pytest.approx((25, 200))


def test_first_and_last_thread_counts_of_every_device_and_rank_count():
    cpu = [Resource("", 1, threads) for threads in (1, 2, 4, 8)]
    gpu = Resource("H200", 1, 1)
    ranks = Resource("", 4, 1)
    assert first_and_last([*cpu, gpu, ranks]) == [cpu[0], cpu[3], ranks, gpu]


@pytest.mark.parametrize("resource, label", [
    (ONE, "1 thread"), (TWO, "2 threads"), (Resource("", 4, 1), "4 ranks"),
    (Resource("", 2, 2), "2 ranks x 2 threads"), (Resource("H200", 1, 1), "H200")])
def test_labels_of_resources(resource, label):
    assert resource.label == label
