// Medians, their confidence intervals and the rank test, against enumeration and simulation.
#include "harness/measure/statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "harness/problem/random.hpp"

namespace stepladder {
namespace {

TEST(Summarize, MedianOfOddAndEvenCounts) {
  EXPECT_DOUBLE_EQ(summarize({3, 1, 2}).median, 2);
  EXPECT_DOUBLE_EQ(summarize({4, 1, 3, 2}).median, 2.5);
  EXPECT_DOUBLE_EQ(summarize({7}).median, 7);
  EXPECT_EQ(summarize({4, 1, 3, 2}).count, 4);
  EXPECT_DOUBLE_EQ(summarize({4, 1, 3, 2}).min, 1);
}

std::vector<double> one_to(int n) {
  std::vector<double> values;
  for (int i = n; i >= 1; --i) values.push_back(i);
  return values;
}

// P(Binomial(n, 1/2) < r) <= 2.5 %: the ranks in tables of the sign test.
TEST(Summarize, IntervalIsThatOfTheSignTest) {
  struct Row {
    int n, low;
  };
  for (const Row row : {Row{6, 1},
                        {8, 1},
                        {9, 2},
                        {11, 2},
                        {12, 3},
                        {15, 4},
                        {20, 6},
                        {25, 8},
                        {40, 14},
                        {1074, 505},
                        {1075, 505},
                        {2000, 956}}) {
    const Summary summary = summarize(one_to(row.n));
    EXPECT_DOUBLE_EQ(summary.ci_low, row.low) << "n = " << row.n;
    EXPECT_DOUBLE_EQ(summary.ci_high, row.n + 1 - row.low) << "n = " << row.n;
  }
}

TEST(Summarize, BelowSixValuesTheIntervalIsTheExtremes) {
  for (int n = 1; n < 6; ++n) {
    const Summary summary = summarize(one_to(n));
    EXPECT_DOUBLE_EQ(summary.ci_low, 1);
    EXPECT_DOUBLE_EQ(summary.ci_high, n);
  }
}

TEST(Summarize, SpreadIsRelativeToTheMedian) {
  EXPECT_DOUBLE_EQ(summarize({2, 4, 6}).spread(), 1);
  EXPECT_DOUBLE_EQ(summarize({0, 0, 0}).spread(), 0);
}

// Three distributions with known medians; timings look like the second and the third.
struct Distribution {
  const char* name;
  double (*of_unit)(double unit);
  double median;
};
const Distribution distributions[] = {
    {"uniform", [](double u) { return u; }, 0.5},
    {"exponential", [](double u) { return -std::log1p(-u); }, std::log(2.0)},
    {"heavy tail", [](double u) { return 1 / (1 - u); }, 2},
};

TEST(Summarize, IntervalCoversTheMedianInNineteenOfTwentyRuns) {
  constexpr int runs = 4000;
  for (const Distribution& distribution : distributions)
    for (const int n : {6, 11, 12, 30}) {
      Random random(5, distribution.name);
      int covered = 0;
      for (int run = 0; run < runs; ++run) {
        std::vector<double> values;
        for (int i = 0; i < n; ++i) values.push_back(distribution.of_unit(random.uniform(0, 1)));
        const Summary summary = summarize(values);
        covered += summary.ci_low <= distribution.median && distribution.median <= summary.ci_high;
      }
      // Four standard deviations of the simulation below 95 %.
      EXPECT_GE(covered, runs * 0.95 - 4 * std::sqrt(runs * 0.95 * 0.05))
          << distribution.name << ", n = " << n;
    }
}

TEST(PairedRatio, IsTheMedianOfTheQuotientsNotTheQuotientOfMedians) {
  const std::vector<double> above = {10, 2, 6}, below = {5, 2, 1};
  EXPECT_DOUBLE_EQ(paired_ratio(above, below).median, 2);
}

TEST(PairedRatio, DriftThatAffectsBothCancels) {
  std::vector<double> above, below;
  for (int i = 1; i <= 12; ++i) {
    below.push_back(i);
    above.push_back(3.0 * i);
  }
  const Summary ratio = paired_ratio(above, below);
  EXPECT_DOUBLE_EQ(ratio.median, 3);
  EXPECT_DOUBLE_EQ(ratio.ci_low, 3);
  EXPECT_DOUBLE_EQ(ratio.ci_high, 3);
}

TEST(PairedRatio, UsesThePairsThatBothHave) {
  const std::vector<double> above = {2, 4, 100}, below = {1, 2};
  EXPECT_EQ(paired_ratio(above, below).count, 2);
  EXPECT_DOUBLE_EQ(paired_ratio(above, below).median, 2);
  const Summary none = paired_ratio(above, {});
  EXPECT_EQ(none.count, 0);
  for (const double value : {none.median, none.ci_low, none.ci_high, none.min, none.spread()})
    EXPECT_EQ(value, 0);
}

// The normal approximation with continuity correction, worked out by hand.
TEST(RankTest, ValuesByHand) {
  const std::vector<double> low = {1, 2, 3}, high = {4, 5, 6};
  // U = 0, mean 4.5, variance 3 · 3 · 7 / 12 = 5.25: z = 4 / 2.2913
  EXPECT_NEAR(rank_test(low, high), 0.08086, 1e-4);
  // Ranks 1 3 3 5.5: U = 2.5, mean 8; ties of 3, 2 and 2: variance 16 / 12 · (9 - 36 / 56);
  // z = 5 / 3.3381
  const std::vector<double> a = {1, 2, 2, 3}, b = {2, 3, 4, 4};
  EXPECT_NEAR(rank_test(a, b), 0.13417, 1e-4);
  // U = 0, mean 1, variance 1 · 2 · 4 / 12: z = 0.5 / 0.8165
  EXPECT_NEAR(rank_test({{1.0}}, {{2.0, 3.0}}), 0.54029, 1e-4);
}

TEST(RankTest, DoesNotDependOnWhichComesFirst) {
  const std::vector<double> a = {1.5, 2, 8, 9, 9}, b = {3, 3, 4, 10};
  EXPECT_DOUBLE_EQ(rank_test(a, b), rank_test(b, a));
}

TEST(RankTest, EqualOrMissingSamplesGiveOne) {
  const std::vector<double> same = {2, 2, 2}, values = {1, 2, 3, 4, 5};
  EXPECT_DOUBLE_EQ(rank_test(same, same), 1);
  EXPECT_DOUBLE_EQ(rank_test(values, values), 1);
  EXPECT_DOUBLE_EQ(rank_test(values, {}), 1);
}

// The exact two-sided p-value: the share of all choices of n_a ranks whose U is as extreme.
double exact_p(std::span<const double> a, std::span<const double> b) {
  std::vector<double> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  const auto u_of = [&](std::uint32_t chosen) {
    double u = 0;
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t j = 0; j < all.size(); ++j)
        if ((chosen >> i & 1U) != 0 && (chosen >> j & 1U) == 0)
          u += all[i] > all[j] ? 1 : all[i] == all[j] ? 0.5 : 0;
    return u;
  };
  const double middle = 0.5 * static_cast<double>(a.size() * b.size());
  const double found = std::abs(u_of((1U << a.size()) - 1) - middle);
  int total = 0, as_far = 0;
  for (std::uint32_t chosen = 0; chosen < 1U << all.size(); ++chosen) {
    if (std::popcount(chosen) != static_cast<int>(a.size())) continue;
    ++total;
    as_far += std::abs(u_of(chosen) - middle) >= found - 1e-9;
  }
  return static_cast<double>(as_far) / total;
}

TEST(RankTest, IsNearExactEnumeration) {
  Random random(3);
  for (int trial = 0; trial < 12; ++trial) {
    const bool ties = trial % 2 == 1;
    std::vector<double> a, b;
    for (int i = 0; i < 6; ++i) {
      a.push_back(ties ? static_cast<double>(random.integer(0, 9)) : random.uniform(0, 1));
      b.push_back((ties ? static_cast<double>(random.integer(0, 9)) : random.uniform(0, 1)) +
                  0.1 * trial);
    }
    EXPECT_NEAR(rank_test(a, b), exact_p(a, b), ties ? 0.03 : 0.015) << "trial " << trial;
  }
}

TEST(RankTest, FalseAlarmsStayBelowTheirRateAndRealShiftsAreFound) {
  Random random(4);
  constexpr int runs = 2000;
  int alarms = 0, seen = 0;
  for (int run = 0; run < runs; ++run) {
    std::vector<double> before, after, slower;
    for (int i = 0; i < 11; ++i) {
      before.push_back(1 + random.uniform(0, 0.1F));
      after.push_back(1 + random.uniform(0, 0.1F));
      slower.push_back(1.1 + random.uniform(0, 0.1F));
    }
    alarms += rank_test(before, after) < 0.05;
    seen += rank_test(before, slower) < 0.05;
  }
  EXPECT_LE(alarms, runs * 0.05 + 4 * std::sqrt(runs * 0.05 * 0.95));
  EXPECT_EQ(seen, runs);
}

}  // namespace
}  // namespace stepladder
