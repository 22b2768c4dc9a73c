// compare_runs against values worked out by hand: standard errors, Student's t, Holm, and what
// cannot be told.
#include "harness/results/comparison.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/results/result_columns.hpp"
#include "tests/error_messages.hpp"
#include "tests/temporary_folder.hpp"

namespace stepladder {
namespace {

constexpr double normal = 1.4826, of_mean = 1.2533;  // see drift.hpp
constexpr double drift = 0.003;                      // the least between two runs

// --- Student's t, by integration of its density --------------------------------------------------

double tail(double x, double degrees = 12) {  // P(|t| > x)
  const double factor = std::exp(std::lgamma((degrees + 1) / 2) - std::lgamma(degrees / 2)) /
                        std::sqrt(degrees * 3.14159265358979323846);
  constexpr int steps = 20000;  // Simpson over [0, x]
  const double h = x / steps;
  double sum = 0;
  for (int i = 0; i <= steps; ++i) {
    const double weight = i == 0 || i == steps ? 1 : i % 2 == 1 ? 4 : 2;
    sum += weight * factor * std::pow(1 + i * h * i * h / degrees, -(degrees + 1) / 2);
  }
  return 1 - 2 * sum * h / 3;
}
double critical(double p, double degrees = 12) {
  double low = 0, high = 60;
  for (int i = 0; i < 60; ++i)
    (tail((low + high) / 2, degrees) > p ? low : high) = (low + high) / 2;
  return high;
}

TEST(CompareOracle, IsTheTableOfStudentsT) {
  EXPECT_NEAR(tail(2.179), 0.05, 1e-4);
  EXPECT_NEAR(tail(3.055), 0.01, 1e-4);
  EXPECT_NEAR(critical(0.001), 4.318, 1e-3);
}

// --- runs ----------------------------------------------------------------------------------------

RowKey key(const std::string& variant, const std::string& problem = "p", std::int64_t threads = 1) {
  return {"matmul", "forward", problem, threads, 1, variant};
}

// Two repetitions in each of two visits, whose centers are 2 d apart. No row has a round in common
// with another one.
std::vector<Repetition> visits(double log_seconds, double d = 0, const std::string& cores = "") {
  static std::int64_t round = 0;
  std::vector<Repetition> all;
  for (const std::int64_t visit : {0, 1})
    for (int i = 0; i < 2; ++i)
      all.push_back({++round, visit, log_seconds + (visit == 0 ? -d : d), cores});
  return all;
}

struct Runs {
  Repetitions before, after;
  void add(const RowKey& row, double change, double d = 0) {
    before[row] = visits(1, d);
    after[row] = visits(1 + change, d);
  }
  Comparison compare(const ComparisonOptions& options = {}) const {
    return compare_runs(before, after, options);
  }
};

RowComparison row(const Comparison& all, const RowKey& wanted) {
  return *std::ranges::find_if(all.rows,
                               [&](const RowComparison& row) { return row.key == wanted; });
}

// The interval and p, as ranks of Holm's method give them.
void expect_judgement(const Judgement& found, double change, double error, int count, int rank,
                      double degrees = 12) {
  EXPECT_TRUE(found.judged);
  const double t = critical(0.05 / count, degrees);
  EXPECT_NEAR(found.ratio, std::exp(change), 1e-9);
  EXPECT_NEAR(found.low, std::exp(change - t * error), 1e-6);
  EXPECT_NEAR(found.high, std::exp(change + t * error), 1e-6);
  EXPECT_NEAR(found.p, std::min(1.0, (count - rank) * tail(std::abs(change) / error, degrees)),
              1e-7);
}

// --- standard errors -----------------------------------------------------------------------------

TEST(Compare, TheErrorOfARowIsOfItsVisitsAndOfTheDriftBetweenTheRuns) {
  constexpr double d = 0.004, change = 0.2;
  Runs runs;
  runs.add(key("a"), change, d);
  for (const char* name : {"b", "c", "d"}) runs.add(key(name), 0, d);
  const Comparison all = runs.compare();
  // The usual spread is normal · median |c0 - c1| / sqrt 2, above the standard deviation of a row;
  // a run has the mean of two visits; there are two runs.
  const double spread = normal * 2 * d / std::sqrt(2.0);
  expect_judgement(row(all, key("a")), change, std::hypot(spread, drift), 4, 0);
  EXPECT_EQ(row(all, key("a")).change, Change::slower);
  EXPECT_EQ(row(all, key("a")).reason, "");
  EXPECT_NEAR(row(all, key("a")).before_seconds, std::exp(1), 1e-12);
  EXPECT_NEAR(row(all, key("a")).after_seconds, std::exp(1.2), 1e-12);
  EXPECT_TRUE(all.rungs.empty());
}

TEST(Compare, ARowThatVariesMoreThanUsualHasItsOwnSpread) {
  constexpr double d = 0.004, of_a = 0.02, change = 0.4;
  Runs runs;
  runs.add(key("a"), change, of_a);
  for (const char* name : {"b", "c", "d"}) runs.add(key(name), 0, d);
  expect_judgement(row(runs.compare(), key("a")), change, std::hypot(std::sqrt(2.0) * of_a, drift),
                   4, 0);
}

TEST(Compare, WithoutASecondVisitTheSpreadIsOnePerCent) {
  Runs runs;
  for (const char* name : {"a", "b", "c", "d"}) {
    const double change = *name == 'a' ? 0.3 : 0;
    runs.before[key(name)] = visits(0);
    runs.after[key(name)] = visits(change);
    for (Repetitions* run : {&runs.before, &runs.after})
      for (Repetition& repetition : (*run)[key(name)]) repetition.visit = 0;
  }
  expect_judgement(row(runs.compare(), key("a")), 0.3, std::hypot(0.01 * std::sqrt(2.0), drift), 4,
                   0);
}

TEST(Compare, TheSpreadWithinVisitsAndThatOfTheOthersCount) {
  constexpr double e = 0.01;
  Runs runs;
  for (const auto& [name, change] :
       {std::pair{"a", 0.5}, {"b", 0.06}, {"c", 0.0}, {"d", -0.02}, {"e", 0.0}}) {
    runs.add(key(name), change);
    for (Repetitions* run : {&runs.before, &runs.after}) {
      auto& repetitions = (*run)[key(name)];  // in each visit e below and above its center
      for (std::size_t i = 0; i < repetitions.size(); ++i)
        repetitions[i].log_seconds += i % 2 == 0 ? -e : e;
    }
  }
  // Four repetitions in each run, whose median deviation is e; the others changed by 0.06, 0, -0.02
  // and 0: by 0 in the median, from which they deviate by 0.01 in the median.
  const double within = of_mean * normal * e / std::sqrt(4.0) * (1 + 2 / 4.0);
  const double reference = of_mean * normal * 0.01 / std::sqrt(4.0);
  const double error = std::sqrt(2 * within * within + reference * reference + drift * drift);
  // The other part has 12 degrees of freedom, that of the four others three: the whole 12
  // (Satterthwaite), or fewer.
  const double share = reference * reference / (error * error);
  const double degrees =
      std::min(12.0, std::floor(1 / (share * share / 3 + (1 - share) * (1 - share) / 12)));
  expect_judgement(row(runs.compare(), key("a")), 0.5, error, 5, 0, degrees);
}

// Twenty rows or more tell the drift between the runs: the median |change| / error is then that of
// the normal distribution.
TEST(Compare, ManyRowsTellTheDriftBetweenTheRuns) {
  constexpr double change = 0.02;
  for (const int third : {6, 7}) {  // 18 and 21 rows
    Runs runs;
    for (int i = 0; i < 3 * third; ++i)
      runs.add(key(fmt::format("v{:02}", i)), change * (i % 3 - 1));
    const Comparison all = runs.compare();
    const bool told = third == 7;
    // Of the others of a row with change 0.02 one more has -0.02; their median is 0.
    const double reference = of_mean * normal * change / std::sqrt(3.0 * third - 1);
    const double error = told ? normal * change : std::hypot(reference, drift);
    // The error of 18 rows is nearly that of the others alone, of 16 degrees of freedom; 12 count
    // at most.
    const double share = std::pow(reference / error, 2);
    const double degrees = std::min(
        12.0, std::floor(1 / (share * share / (3 * third - 2) + (1 - share) * (1 - share) / 12)));
    const double t = critical(0.05 / (3 * third), degrees);
    const RowComparison& slower = row(all, key("v02"));
    EXPECT_NEAR(slower.ratio, std::exp(change), 1e-9);
    EXPECT_NEAR(slower.high, std::exp(change + t * error), 1e-6) << 3 * third << " rows";
  }
}

TEST(Compare, RowsOnSeveralThreadsHaveADriftOfTheirOwn) {
  Runs runs;
  for (int i = 0; i < 21; ++i) {
    runs.add(key(fmt::format("v{:02}", i)), 0.02 * (i % 3 - 1));
    runs.add(key(fmt::format("v{:02}", i), "p", 2), 0.05 * (i % 3 - 1));
    RowKey ranks = key(fmt::format("v{:02}", i));
    ranks.ranks = 3;
    runs.add(ranks, 0.05 * (i % 3 - 1));
  }
  const Comparison all = runs.compare();
  const double t = critical(0.05 / 63);
  EXPECT_NEAR(row(all, key("v02")).high, std::exp(0.02 + t * normal * 0.02), 1e-6);
  EXPECT_NEAR(row(all, key("v02", "p", 2)).high, std::exp(0.05 + t * normal * 0.05), 1e-6);
  RowKey ranks = key("v02");
  ranks.ranks = 3;
  EXPECT_NEAR(row(all, ranks).high, std::exp(0.05 + t * normal * 0.05), 1e-6);
}

TEST(Compare, AMachineThatIsSlowerAsAWholeChangesNothing) {
  Runs runs;
  for (const char* name : {"a", "b", "c", "d"}) runs.add(key(name), 0.7);
  for (const RowComparison& found : runs.compare().rows) {
    EXPECT_NEAR(found.ratio, 1, 1e-12);
    EXPECT_EQ(found.p, 1);
    EXPECT_EQ(found.change, Change::same);
    EXPECT_NEAR(found.after_seconds / found.before_seconds, std::exp(0.7), 1e-9);
  }
}

// --- the answers ---------------------------------------------------------------------------------

// Four rows have an error of `drift` alone, and so has each of those that change little.
Runs with_changes(const std::vector<double>& changes, int others = 20 - 4) {
  Runs runs;
  for (std::size_t i = 0; i < changes.size(); ++i) runs.add(key(fmt::format("a{}", i)), changes[i]);
  for (int i = 0; i < others; ++i) runs.add(key(fmt::format("z{:02}", i)), 0);
  return runs;
}

TEST(Compare, PValuesAreCorrectedByHolmsMethod) {
  const Comparison all = with_changes({0.02, 0.019, -0.018}, 6).compare();
  expect_judgement(row(all, key("a0")), 0.02, drift, 9, 0);
  expect_judgement(row(all, key("a1")), 0.019, drift, 9, 1);
  expect_judgement(row(all, key("a2")), -0.018, drift, 9, 2);
  EXPECT_EQ(row(all, key("z03")).p, 1);
}

TEST(Compare, APValueIsAtLeastThatOfALargerChange) {
  // Alone the second would have 8 p, less than 9 p of the first.
  const Comparison all = with_changes({0.012, -0.012}, 7).compare();
  const double p = 9 * tail(0.012 / drift);
  EXPECT_NEAR(row(all, key("a0")).p, p, 1e-7);
  EXPECT_NEAR(row(all, key("a1")).p, p, 1e-7);
}

TEST(Compare, ASignificantChangeOfHalfTheThresholdIsSlowerOrFaster) {
  const double half = std::log1p(0.05) / 2;
  const Comparison all =
      with_changes({half + 1e-6, half - 1e-6, -half - 1e-6, -half + 1e-6}, 7).compare();
  EXPECT_EQ(row(all, key("a0")).change, Change::slower);
  EXPECT_EQ(row(all, key("a2")).change, Change::faster);
  for (const char* name : {"a1", "a3"}) {
    EXPECT_LT(row(all, key(name)).p, 0.05);
    EXPECT_EQ(row(all, key(name)).change, Change::same);
  }
  EXPECT_EQ(row(all, key("z00")).change, Change::same);
}

TEST(Compare, AChangeThatIsNotSignificantCannotBeTold) {
  const double t = critical(0.05 / 9);
  // Below and above the significance, with a threshold so small that no interval is within it.
  const Comparison all = with_changes({(t + 0.01) * drift, (t - 0.3) * drift}, 7)
                             .compare({.threshold = 0.005, .significance = 0.05});
  EXPECT_EQ(row(all, key("a0")).change, Change::slower);
  const RowComparison& unknown = row(all, key("a1"));
  EXPECT_EQ(unknown.change, Change::cannot_tell);
  const double own = critical(0.1) * drift;
  EXPECT_EQ(unknown.reason,
            fmt::format("known within {:.3f} to {:.3f} alone", unknown.ratio * std::exp(-own),
                        unknown.ratio * std::exp(own)));
  EXPECT_EQ(row(all, key("z00")).change, Change::cannot_tell);
}

// Two one-sided tests at 5 %, of the row alone.
TEST(Compare, SameIsTheRowsOwnIntervalWithinTheThresholdOnBothSides) {
  const double widest = critical(0.1) * drift;
  for (const double sign : {-1.0, 1.0})
    for (const double margin : {-1e-4, 1e-4}) {
      const double change = sign * 0.002;
      const Comparison all =
          with_changes({change}, 8).compare({.threshold = std::expm1(0.002 + widest + margin)});
      EXPECT_EQ(row(all, key("a0")).change, margin > 0 ? Change::same : Change::cannot_tell);
    }
}

// Of 21 rows most change by less than their errors: a row is the same as far as most rows are, and
// its interval stays as wide as its visits say.
TEST(Compare, OnAQuietMachineMostRowsTellWhatIsUsual) {
  constexpr double d = 0.02, change = 0.004;
  Runs runs;
  for (int i = 0; i < 21; ++i) runs.add(key(fmt::format("v{:02}", i)), change * (i % 3 - 1), d);
  const Comparison all = runs.compare();
  const RowComparison& found = row(all, key("v02"));
  EXPECT_GT(found.high, 1.1);
  EXPECT_EQ(found.change, Change::same);
  for (int i = 4; i < 21; ++i) {  // of four rows alone nothing is known
    runs.before.erase(key(fmt::format("v{:02}", i)));
    runs.after.erase(key(fmt::format("v{:02}", i)));
  }
  EXPECT_EQ(row(runs.compare(), key("v02")).change, Change::cannot_tell);
}

TEST(Compare, AChangeThatItsOwnMediansContradictCannotBeTold) {
  Runs runs;
  runs.add(key("a"), 0);
  for (const char* name : {"b", "c", "d"}) runs.add(key(name), -0.3);
  const RowComparison found = row(runs.compare(), key("a"));
  EXPECT_NEAR(found.ratio, std::exp(0.3), 1e-9);
  EXPECT_LT(found.p, 0.05);
  EXPECT_EQ(found.change, Change::cannot_tell);
  EXPECT_EQ(found.reason, "its own medians give 1.000: the other rows changed");
}

TEST(Compare, TheSignificanceIsAnOption) {
  const double t = critical(0.2 / 9), strict = critical(0.01 / 9);
  const Runs runs = with_changes({(t + 0.01) * drift}, 8);
  const auto found = [&](double significance) {
    return row(runs.compare({.threshold = 0.005, .significance = significance}), key("a0"));
  };
  EXPECT_EQ(found(0.2).change, Change::slower);
  EXPECT_EQ(found(0.01).change, Change::cannot_tell);
  EXPECT_NEAR(found(0.2).high / found(0.2).ratio, std::exp(t * drift), 1e-6);
  EXPECT_NEAR(found(0.01).high / found(0.01).ratio, std::exp(strict * drift), 1e-6);
}

TEST(Compare, NamesOfTheAnswers) {
  EXPECT_STREQ(name_of(Change::same), "same");
  EXPECT_STREQ(name_of(Change::slower), "slower");
  EXPECT_STREQ(name_of(Change::faster), "faster");
  EXPECT_STREQ(name_of(Change::cannot_tell), "cannot tell");
}

// --- what cannot be compared ---------------------------------------------------------------------

TEST(Compare, ARowNeedsTwoOthersOfItsProblem) {
  Runs runs;
  for (const char* name : {"a", "b"}) runs.add(key(name, "few"), 0.5);
  for (const char* name : {"a", "b", "c"}) runs.add(key(name, "enough"), *name == 'a' ? 0.5 : 0);
  const Comparison all = runs.compare();
  EXPECT_EQ(all.rows.size(), 5U);
  for (const char* name : {"a", "b"}) {
    const RowComparison& alone = row(all, key(name, "few"));
    EXPECT_EQ(alone.change, Change::cannot_tell);
    EXPECT_EQ(alone.reason, "fewer than two other rows of its problem to judge it beside");
    EXPECT_EQ(alone.ratio, 1);
  }
  EXPECT_NEAR(row(all, key("a", "enough")).ratio, std::exp(0.5), 1e-9);
}

TEST(Compare, RowsOfAnotherProblemOrNumberOfThreadsAreNotBesideARow) {
  Runs runs;
  for (const char* name : {"a", "b"})
    for (const std::int64_t threads : {1, 2}) {
      runs.add(key(name, "p", threads), 0);
      runs.add(key(name, "q", threads), 0);
      RowKey other_primitive = key(name), other_direction = key(name), other_ranks = key(name);
      other_primitive.primitive = "max_pool";
      other_direction.direction = "backward";
      other_ranks.ranks = 2;
      for (const RowKey& other : {other_primitive, other_direction, other_ranks})
        runs.add(other, 0);
    }
  for (const RowComparison& found : runs.compare().rows)
    EXPECT_TRUE(says(found.reason, {"fewer than two other rows"}));
}

TEST(Compare, ARowOfOneRepetitionHasNoRatio) {
  Runs runs;
  for (const char* name : {"a", "b", "c", "d"}) runs.add(key(name), 0);
  runs.after[key("a")].resize(1);
  const RowComparison found = row(runs.compare(), key("a"));
  EXPECT_FALSE(found.judged);
  EXPECT_EQ(found.change, Change::cannot_tell);
  EXPECT_EQ(found.reason, "one repetition in a run; measure it longer, with --budget");
}

TEST(Compare, DisturbedRowsAreNamedAndDoNotCountAsOthers) {
  Runs runs;
  for (const char* name : {"a", "b", "c", "d"}) runs.add(key(name), 0);
  runs.before[key("a")].clear();
  runs.after[key("b")].clear();
  const Comparison all = runs.compare();
  for (const char* name : {"a", "b"}) {
    const RowComparison& disturbed = row(all, key(name));
    EXPECT_EQ(disturbed.reason, "most repetitions were disturbed");
    EXPECT_EQ(disturbed.change, Change::cannot_tell);
    EXPECT_EQ(disturbed.before_seconds, 0);
    EXPECT_EQ(disturbed.after_seconds, 0);
    for (const double value : {disturbed.ratio, disturbed.low, disturbed.high, disturbed.p})
      EXPECT_EQ(value, 1);
  }
  EXPECT_TRUE(says(row(all, key("c")).reason, {"fewer than two other rows"}));
}

TEST(Compare, RowsOfOneRunAloneAreLeftOut) {
  Runs runs;
  for (const char* name : {"a", "b", "c", "d"}) runs.add(key(name), 0);
  runs.before.erase(key("a"));
  runs.after.erase(key("c"));
  const Comparison all = runs.compare();
  ASSERT_EQ(all.rows.size(), 2U);
  EXPECT_EQ(all.rows[0].key, key("b"));
  EXPECT_EQ(all.rows[1].key, key("d"));
}

// Both runs have "near" twice per row; "far" only the first, "shared" only the second.
TEST(Compare, OnlyTheStateOfTheCoresThatBothRunsSawIsCompared) {
  Runs runs;
  for (const char* name : {"a", "b", "c", "d"}) {
    const RowKey row = key(name, "p", 2);
    const double change = *name == 'a' ? 0.3 : 0;
    runs.before[row] = visits(1, 0, "near");
    runs.after[row] = visits(1 + change, 0, "near");
    for (int i = 0; i < 3; ++i)
      for (const Repetition& other : visits(*name == 'a' ? 7 : 1, 0, "far"))
        runs.before[row].push_back(other);
    for (int i = 0; i < 4; ++i)
      for (const Repetition& other : visits(*name == 'b' ? 9 : 1, 0, "shared"))
        runs.after[row].push_back(other);
  }
  const Comparison all = runs.compare();
  EXPECT_NEAR(row(all, key("a", "p", 2)).ratio, std::exp(0.3), 1e-9);
  EXPECT_NEAR(row(all, key("b", "p", 2)).ratio, 1, 1e-9);
}

TEST(Compare, ARowThatIsHardlyInThatStateCannotBeTold) {
  for (const std::size_t left : {0, 1, 2}) {
    for (const bool of_before : {false, true}) {
      Runs runs;
      for (const char* name : {"a", "b", "c", "d", "e"}) {
        runs.before[key(name, "p", 2)] = visits(1, 0, "near");
        runs.after[key(name, "p", 2)] = visits(*name == 'a' ? 1.2 : 1, 0, "near");
      }
      auto& hardly = (of_before ? runs.before : runs.after)[key("a", "p", 2)];
      for (std::size_t i = left; i < hardly.size(); ++i) hardly[i].cores = "far";
      const Comparison all = runs.compare();
      const RowComparison& found = row(all, key("a", "p", 2));
      const bool told = left == 2;
      EXPECT_EQ(found.reason, told ? "" : "the cores were near in one run and far in the other");
      EXPECT_EQ(found.change, told ? Change::slower : Change::cannot_tell);
      EXPECT_NEAR(found.ratio, told ? std::exp(0.2) : 1, 1e-9);
      EXPECT_EQ(row(all, key("b", "p", 2)).change, Change::same);
    }
  }
}

// --- rungs ---------------------------------------------------------------------------------------

TEST(Compare, ARungOverItsProblemsIsTheMeanByPrecision) {
  Runs runs;
  const double changes[] = {0.04, 0.10, 0.07}, spreads[] = {0.002, 0.01, 0.02};
  for (int p = 0; p < 3; ++p) {
    const std::string problem = "p" + std::to_string(p);
    runs.add(key("a", problem), changes[p], spreads[p]);
    for (const char* other : {"x", "y", "z"}) runs.add(key(other, problem), 0, 0);
  }
  for (int p = 0; p < 2; ++p)  // of too few problems
    for (const char* name : {"a", "x", "y"})
      runs.add(key(name, "p" + std::to_string(p), 2), *name == 'a' ? 0.3 : 0);
  const Comparison all = runs.compare();
  ASSERT_EQ(all.rungs.size(), 4U);
  const RungComparison& rung = all.rungs[0];
  RowKey expected = key("a", "");
  expected.direction.clear();
  EXPECT_EQ(rung.key, expected);
  EXPECT_EQ(rung.problems, 3);
  double weights = 0, sum = 0;
  for (int p = 0; p < 3; ++p) {
    const double error = std::hypot(std::sqrt(2.0) * spreads[p], drift);
    weights += 1 / (error * error);
    sum += changes[p] / (error * error);
  }
  expect_judgement(rung, sum / weights, std::hypot(1 / std::sqrt(weights), drift), 4, 0);
  EXPECT_EQ(rung.change, Change::slower);
  EXPECT_EQ(all.rungs[1].change, Change::same);
}

// --- reading -------------------------------------------------------------------------------------

// A samples.csv of lines of: variant, round, visit, seconds, marked, cores.
std::string samples(const std::vector<std::vector<std::string>>& lines) {
  const std::vector<std::string>& names = samples_columns().names();
  std::string text = fmt::format("{}\n", fmt::join(names, ","));
  for (const auto& line : lines) {
    std::map<std::string, std::string> row = {
        {"primitive", "matmul"}, {"direction", "forward"}, {"problem", "p"},
        {"threads", "2"},        {"ranks", "3"},           {"variant", line[0]},
        {"repetition", line[1]}, {"visit", line[2]},       {"seconds", line[3]},
        {"marked", line[4]},     {"cores", line[5]}};
    std::vector<std::string> fields;
    for (const std::string& name : names) fields.push_back(row[name]);
    text += fmt::format("{}\n", fmt::join(fields, ","));
  }
  return text;
}

Repetitions read(const std::vector<std::vector<std::string>>& lines) {
  const TemporaryFolder run;
  run.write("samples.csv", samples(lines));
  return read_repetitions(run.path());
}

TEST(Compare, ReadsEveryUndisturbedRepetition) {
  const Repetitions all = read({{"a", "4", "1", "0.5", "", "near"},
                                {"a", "1000001", "2", "2e-3", "", "far"},
                                {"b", "4", "1", "1", "", ""},
                                {"b", "5", "1", "3", "", ""}});
  ASSERT_EQ(all.size(), 2U);
  const RowKey a{"matmul", "forward", "p", 2, 3, "a"};
  ASSERT_TRUE(all.contains(a));
  const std::vector<Repetition>& found = all.at(a);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].round, 4);
  EXPECT_EQ(found[0].visit, 1);
  EXPECT_DOUBLE_EQ(found[0].log_seconds, std::log(0.5));
  EXPECT_EQ(found[0].cores, "near");
  EXPECT_EQ(found[1].round, 1000001);
  EXPECT_EQ(found[1].visit, 2);
  EXPECT_DOUBLE_EQ(found[1].log_seconds, std::log(2e-3));
  EXPECT_EQ(found[1].cores, "far");
}

TEST(Compare, ARowOfWhichMostRepetitionsWereDisturbedHasNone) {
  const auto kept = [](int quiet, int disturbed) {
    std::vector<std::vector<std::string>> lines;
    for (int i = 0; i < quiet + disturbed; ++i)
      lines.push_back({"a", std::to_string(i), "0", "1", i < quiet ? "" : "disturbed", ""});
    return read(lines).begin()->second.size();
  };
  EXPECT_EQ(kept(1, 0), 1U);
  EXPECT_EQ(kept(2, 0), 2U);
  EXPECT_EQ(kept(1, 1), 0U);
  EXPECT_EQ(kept(2, 2), 2U);
  EXPECT_EQ(kept(2, 3), 0U);
  EXPECT_EQ(kept(3, 3), 3U);
  EXPECT_EQ(kept(0, 3), 0U);
}

TEST(Compare, AFieldThatCannotBeIsNamed) {
  const auto message = [](const std::vector<std::string>& line) {
    return error_of([&] { read({line}); });
  };
  for (const char* seconds : {"0", "-1", "inf", "nan", "1x", ""})
    EXPECT_TRUE(says(message({"a", "1", "0", seconds, "", ""}), {"samples.csv:2: column seconds"}));
  EXPECT_TRUE(says(message({"a", "-1", "0", "1", "", ""}), {"column repetition"}));
  EXPECT_TRUE(says(message({"a", "1", "-1", "1", "", ""}), {"column visit"}));
  EXPECT_EQ(message({"a", "1099511627776", "1048576", "1", "", ""}), "");
  EXPECT_TRUE(says(message({"a", "1099511627777", "0", "1", "", ""}), {"column repetition"}));
  EXPECT_TRUE(says(message({"a", "1", "1048577", "1", "", ""}), {"column visit"}));
}

// --- two programs in turns -----------------------------------------------------------------------

// One repetition in each visit; a visit has a drift that both programs see.
Runs in_turns(const std::vector<double>& changes, const std::string& problem = "p") {
  Runs runs;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const double machine = 0.3 * static_cast<double>(i % 3);
    const auto visit = static_cast<std::int64_t>(i);
    runs.before[key("a", problem)].push_back({visit, visit, machine, ""});
    runs.after[key("a", problem)].push_back({visit, visit, machine + changes[i], ""});
  }
  return runs;
}

// 10 values, two cut at each end: mean of 3 to 8; winsorized 3 3 3 4 5 6 7 8 8 8, whose sum of
// squares is 42.5.
TEST(ComparePairs, IsTheTrimmedMeanOfTheChanges) {
  Runs runs = in_turns({0.05, 0.01, 0.09, 0.02, 0.03, 0.04, 0.06, 0.07, 0.08, 9});
  const Comparison all = compare_pairs(runs.before, runs.after, {});
  ASSERT_EQ(all.rows.size(), 1U);
  const double error = std::sqrt(0.00425 / (6 * 5));
  EXPECT_NEAR(all.rows[0].ratio, std::exp(0.055), 1e-9);
  EXPECT_NEAR(all.rows[0].p, tail(0.055 / error, 5), 1e-6);
  EXPECT_NEAR(all.rows[0].high, std::exp(0.055 + critical(0.05, 5) * error), 1e-5);
  EXPECT_EQ(all.rows[0].change, Change::slower);
  EXPECT_TRUE(all.rungs.empty());
}

TEST(ComparePairs, TwoRowsOfAProblemAreEnoughAndAChangeOfAllIsSeen) {
  Runs runs = in_turns({0.2, 0.21, 0.19, 0.2, 0.2, 0.21});
  EXPECT_EQ(compare_pairs(runs.before, runs.after, {}).rows[0].change, Change::slower);
  EXPECT_EQ(compare_pairs(runs.after, runs.before, {}).rows[0].change, Change::faster);
  EXPECT_EQ(compare_pairs(runs.before, runs.before, {}).rows[0].change, Change::same);
}

TEST(ComparePairs, FewPairsCannotBeTold) {
  Runs runs = in_turns({0.2, 0.21, 0.19, 0.2});
  const Comparison all = compare_pairs(runs.before, runs.after, {});
  EXPECT_EQ(all.rows[0].reason, "fewer than 5 pairs");
  EXPECT_FALSE(all.rows[0].judged);
}

TEST(ComparePairs, ARungIsTheMeanOverItsProblemsInEachPair) {
  Runs runs = in_turns({0.01, 0.03, 0.01, 0.03, 0.02}, "p");
  const Runs others = in_turns({0.05, 0.03, 0.05, 0.03, 0.04}, "q");
  runs.before.insert(others.before.begin(), others.before.end());
  runs.after.insert(others.after.begin(), others.after.end());
  const Comparison all = compare_pairs(runs.before, runs.after, {});
  ASSERT_EQ(all.rungs.size(), 1U);
  EXPECT_EQ(all.rungs[0].problems, 2);
  EXPECT_NEAR(all.rungs[0].ratio, std::exp(0.03), 1e-9);  // 0.03 in every pair
  EXPECT_EQ(all.rungs[0].change, Change::slower);
}

}  // namespace
}  // namespace stepladder
