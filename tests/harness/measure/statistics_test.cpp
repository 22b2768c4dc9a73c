// Medians and their confidence intervals, against tables, simulation and the published runs.
#include "harness/measure/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>
#include <utility>
#include <vector>

#include "harness/io/file.hpp"
#include "harness/problem/random.hpp"
#include "harness/results/comparison.hpp"

namespace stepladder {
namespace {

// Nearly: a sum of twelve uniform values, whose variances are 1/12.
double normal(Random& random) {
  double sum = 0;
  for (int i = 0; i < 12; ++i) sum += random.uniform(-0.5F, 0.5F);
  return sum;
}

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
  const std::pair<int, int> lows[] = {{6, 1},   {8, 1},      {9, 2},      {11, 2},
                                      {12, 3},  {15, 4},     {20, 6},     {25, 8},
                                      {40, 14}, {1074, 505}, {1075, 505}, {2000, 956}};
  for (const auto& [n, low] : lows) {
    const Summary summary = summarize(one_to(n));
    EXPECT_DOUBLE_EQ(summary.ci_low, low) << "n = " << n;
    EXPECT_DOUBLE_EQ(summary.ci_high, n + 1 - low) << "n = " << n;
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

TEST(Statistics, StandardDeviationIsThatOfASample) {
  EXPECT_EQ(standard_deviation({}), 0);
  EXPECT_EQ(standard_deviation({3}), 0);
  EXPECT_DOUBLE_EQ(standard_deviation({1, 3}), std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(standard_deviation({2, 4, 4, 4, 5, 5, 7, 9}), std::sqrt(32.0 / 7));
}

// Tables of Student's t, 95 % and 99 % two-sided.
TEST(Statistics, StudentsQuantilesAreThoseOfTheTables) {
  const std::pair<int, double> table[] = {{1, 12.706}, {2, 4.303}, {3, 3.182}, {4, 2.776},
                                          {5, 2.571},  {7, 2.365}, {8, 2.306}, {30, 2.042}};
  for (const auto& [degrees, x] : table) {
    EXPECT_NEAR(student_critical(0.05, degrees), x, 6e-4) << degrees;
    EXPECT_NEAR(student_p(x, degrees), 0.05, 2e-4) << degrees;
    EXPECT_EQ(student_p(-x, degrees), student_p(x, degrees));
  }
  EXPECT_NEAR(student_critical(0.01, 12), 3.055, 6e-4);
  EXPECT_DOUBLE_EQ(student_p(0, 5), 1);
}

TEST(UsualSpread, IsTheStandardDeviationOfNormalVisits) {
  Random random(6);
  VisitDifferences spread;
  for (int i = 0; i < 4000; ++i) spread.add("p", 1, 0.03 * (normal(random) - normal(random)));
  EXPECT_NEAR(spread.usual("p").deviation, 0.03, 0.002);
  EXPECT_EQ(spread.usual("p").degrees, 6);
  EXPECT_EQ(VisitDifferences().usual("p").deviation, 0);
}

// With a shift of all rows as large as the standard deviation of each, the 93rd percentile of |x|
// is that of a normal variable of 1.37 deviations: the share of the shift is 1 / 1.37^2, and all
// rows tell as much as 1.9 visits. Without parts of their own they are one observation.
TEST(UsualSpread, CountsForFewVisitsWhereAllRowsShiftAlike) {
  Random random(8);
  VisitDifferences spread;
  for (int i = 0; i < 1000; ++i) {
    spread.add("shifted", 1, 0.05 + 0.05 * normal(random));
    spread.add("a little", 1, 0.02 + 0.04 * normal(random));
    spread.add("alike", 1, 0.05);
  }
  VisitDifferences few;
  for (int i = 0; i < 19; ++i) few.add("alike", 1, 0.05);
  EXPECT_EQ(spread.usual("shifted").degrees, 2);
  EXPECT_EQ(spread.usual("a little").degrees, 5);
  EXPECT_EQ(spread.usual("alike").degrees, 1);
  EXPECT_EQ(few.usual("alike").degrees, 6) << "too few to tell";
}

TEST(UsualSpread, IsOfRowsThatAreDisturbedAlike) {
  VisitDifferences differences;
  const auto spread = [&](const char* group) { return differences.usual(group).deviation; };
  for (int i = 0; i < 20; ++i) {
    differences.add("p 1 1", 1, -0.01);
    differences.add("p 2 1", 1, 0.1);
  }
  for (int i = 0; i < 3; ++i) differences.add("q 1 1", 1, 5);
  EXPECT_NEAR(spread("p 2 1"), 10 * spread("p 1 1"), 1e-12);
  EXPECT_EQ(spread("q 1 1"), spread("p 2 1")) << "too few of their own: of all rows";
  EXPECT_EQ(spread("unknown"), spread("p 2 1"));
}

TEST(UsualSpread, IsOfTheVisitThatDiffersMost) {
  VisitDifferences differences;
  for (int i = 0; i < 100; ++i) differences.add("p", 1, i % 2 == 0 ? 0.01 : -0.01);
  const double first = differences.usual("p").deviation;
  for (int i = 0; i < 19; ++i) differences.add("p", 2, i % 2 == 0 ? 0.04 : -0.04);
  EXPECT_EQ(differences.usual("p").deviation, first) << "too few rows";
  differences.add("p", 2, 0.04);
  EXPECT_NEAR(differences.usual("p").deviation, 4 * first, 1e-12);
  for (int i = 0; i < 20; ++i) differences.add("p", 3, 0.02);
  EXPECT_NEAR(differences.usual("p").deviation, 4 * first, 1e-12);
}

TEST(SummarizeVisits, OneVisitHasTheIntervalOfItsOwn) {
  const Summary one = summarize_visits({{1, 2, 3}}, {.deviation = 10}),
                alone = summarize({1, 2, 3});
  EXPECT_EQ(one.ci_low, alone.ci_low);
  EXPECT_EQ(one.ci_high, alone.ci_high);
}

TEST(SummarizeVisits, VisitsThatAgreeKeepTheIntervalOfTheirRepetitions) {
  const Summary both = summarize_visits({{1, 2, 3, 4}, {1, 2, 3, 4}}, {});
  const Summary all = summarize({1, 2, 3, 4, 1, 2, 3, 4});
  EXPECT_EQ(both.median, all.median);
  EXPECT_EQ(both.ci_low, all.ci_low);
  EXPECT_EQ(both.ci_high, all.ci_high);
}

// v = 2 visits with the log medians 0 and d: s^2 = d^2 / 2; with d0 = 6, degrees = 7, t = 2.3646.
TEST(SummarizeVisits, TheIntervalIsThatOfTheFormula) {
  const double d = 0.2, usual = 0.1;
  const Summary found =
      summarize_visits({{1, 1, 1}, {std::exp(d), std::exp(d), std::exp(d)}}, {usual, 6});
  const double spread = std::sqrt((6 * usual * usual + d * d / 2) / 7);
  const double width = 2.36462 * spread / std::sqrt(2.0);
  EXPECT_NEAR(std::log(found.ci_high / found.median), width, 1e-5);
  EXPECT_NEAR(std::log(found.median / found.ci_low), width, 1e-5);
}

// Visits differ by 5 %, repetitions of a visit by 1 %: the interval of pooled repetitions takes
// them as independent, and misses the true time.
TEST(SummarizeVisits, IntervalCoversTheTruthDespiteEffectsOfVisits) {
  constexpr int rows = 4000;
  Random random(7);
  std::vector<std::vector<std::vector<double>>> all;
  VisitDifferences differences;
  for (int row = 0; row < rows; ++row) {
    auto& visits = all.emplace_back(3);
    for (std::vector<double>& visit : visits) {
      const double effect = 0.05 * normal(random);
      for (int i = 0; i < 5; ++i) visit.push_back(std::exp(effect + 0.01 * normal(random)));
    }
    differences.add("", 1, std::log(summarize(visits[0]).median / summarize(visits[1]).median));
  }
  const UsualSpread usual = differences.usual("");
  int covered = 0, pooled = 0;
  for (const auto& visits : all) {
    const Summary summary = summarize_visits(visits, usual);
    covered += summary.ci_low <= 1 && 1 <= summary.ci_high;
    std::vector<double> values;
    for (const auto& visit : visits) values.insert(values.end(), visit.begin(), visit.end());
    const Summary alone = summarize(values);
    pooled += alone.ci_low <= 1 && 1 <= alone.ci_high;
  }
  EXPECT_GE(covered, 0.94 * rows);
  EXPECT_LE(covered, 0.99 * rows) << "wider than it has to be";
  EXPECT_LT(pooled, 0.85 * rows);
}

std::vector<std::filesystem::path> published_runs() {
  const std::filesystem::path results = source_directory() / "results";
  std::vector<std::filesystem::path> runs;
  for (auto entry = std::filesystem::recursive_directory_iterator(results);
       entry != std::filesystem::recursive_directory_iterator(); ++entry)
    if (entry->path() == results / "local")
      entry.disable_recursion_pending();
    else if (entry->path().filename() == "samples.csv.gz")
      runs.push_back(entry->path().parent_path());
  return runs;
}

// Of the published runs: how often the median of the last visit is outside of the interval of those
// before it. Pooled repetitions miss at least twice as many in each run, however small its effects
// of visits, and a quarter of the rows of all runs.
TEST(SummarizeVisits, IntervalsOfPublishedRunsCoverWhatTheNextVisitGave) {
  int runs = 0, rows_of_all = 0, outside_of_all_pooled = 0;
  for (const std::filesystem::path& run : published_runs()) {
    std::vector<std::pair<std::string, std::vector<std::vector<double>>>> rows;
    VisitDifferences differences;
    for (const auto& [key, repetitions] : read_repetitions(run)) {
      std::map<std::int64_t, std::vector<double>> by_visit;
      for (const Repetition& repetition : repetitions)
        by_visit[repetition.visit].push_back(std::exp(repetition.log_seconds));
      if (by_visit.size() < 2) continue;
      auto& [group, visits] = rows.emplace_back(
          key.primitive + ' ' + std::to_string(key.threads) + ' ' + std::to_string(key.ranks),
          std::vector<std::vector<double>>{});
      for (auto& [visit, seconds] : by_visit) visits.push_back(std::move(seconds));
      for (std::size_t later = 1; later < visits.size(); ++later)
        for (std::size_t i = 0; i < later; ++i)
          if (visits[i].size() > 1 && visits[later].size() > 1)
            differences.add(
                group, later,
                std::log(summarize(visits[i]).median / summarize(visits[later]).median));
    }
    int count = 0, outside = 0, outside_of_pooled = 0;
    for (auto& [group, visits] : rows) {
      if (visits.size() < 3) continue;
      const double next = summarize(visits.back()).median;
      visits.pop_back();
      std::vector<double> pooled;
      for (const auto& visit : visits) pooled.insert(pooled.end(), visit.begin(), visit.end());
      if (pooled.size() < 6) continue;
      const auto misses = [&](const Summary& s) { return next < s.ci_low || s.ci_high < next; };
      ++count;
      outside += misses(summarize_visits(visits, differences.usual(group)));
      outside_of_pooled += misses(summarize(pooled));
    }
    if (count < 500) continue;
    ++runs;
    std::cout << run << ": " << count << " rows, outside " << outside << ", of pooled repetitions "
              << outside_of_pooled << '\n';
    EXPECT_LE(outside, 0.12 * count) << run;
    EXPECT_GE(outside, 0.06 * count) << "wider than it has to be: " << run;
    EXPECT_GE(outside_of_pooled, 2 * outside) << run;
    rows_of_all += count;
    outside_of_all_pooled += outside_of_pooled;
  }
  EXPECT_GE(outside_of_all_pooled, 0.25 * rows_of_all);
  EXPECT_GE(runs, 3);
}

TEST(Percentile, IsTheNearestRank) {
  std::vector<double> values(10);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i + 1);
  EXPECT_EQ(percentile(values, 50), 5);
  EXPECT_EQ(percentile(values, 90), 9);
  EXPECT_EQ(percentile(values, 91), 10);
  EXPECT_EQ(percentile(values, 99), 10);
  EXPECT_EQ(percentile(values, 100), 10);
  EXPECT_EQ(percentile(values, 1), 1);
  EXPECT_EQ(percentile(std::vector<double>{3}, 50), 3);
}

}  // namespace
}  // namespace stepladder
