#include "harness/results/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "harness/io/csv.hpp"
#include "harness/io/number.hpp"
#include "harness/measure/statistics.hpp"
#include "harness/results/result_columns.hpp"

namespace stepladder {
namespace {

constexpr std::size_t least_rows_for_drift = 20;
constexpr std::size_t least_problems = 3;  // of a rung
constexpr std::size_t least_pairs = 5;
constexpr double least_drift = 0.003;  // between two runs; of the recorded runs in tests/compare
constexpr double usual_spread = 0.01;  // between visits, where no row has two
// Of Student's t: its tails allow for errors that are estimated from few visits, and agree with the
// recorded runs.
constexpr int most_degrees = 12;
constexpr double least_usual_share = 1.0 / 3;
constexpr double same_significance =
    0.1;  // both sides: a change of the threshold is called the same in 5 %

double median_deviation(const std::vector<double>& values, double center) {
  std::vector<double> deviations;
  for (const double value : values) deviations.push_back(std::abs(value - center));
  return median(std::move(deviations));
}

// The state of the cores that both runs saw most often, in which the rows are compared.
std::string common_cores(const Group& before, const Group& after) {
  std::map<std::string, std::pair<int, int>> counts;
  for (const auto& row : before)
    for (const Repetition& repetition : row) ++counts[repetition.cores].first;
  for (const auto& row : after)
    for (const Repetition& repetition : row) ++counts[repetition.cores].second;
  std::string best;
  int most = -1;
  for (const auto& [cores, count] : counts)
    if (const int both = std::min(count.first, count.second); both > most) {
      most = both;
      best = cores;
    }
  return best;
}

// A row of both runs before its change is judged.
struct Pair {
  std::size_t row = 0;  // of the result
  Estimate before, after;
  double change = 0;           // of the logarithm of the time, beside the other rows
  double reference_error = 0;  // of the median change of the others
  double error = 0;
  double usual_error = 0;  // at most `error`
  int others = 0;          // rows of its problem
  int degrees = 0;         // of freedom of the error
};

// The changes of the rows of one problem beside each other. Empty if there are too few.
void set_changes(std::vector<Pair>& group) {
  for (std::size_t i = 0; i < group.size(); ++i) {
    std::vector<double> others;
    for (std::size_t j = 0; j < group.size(); ++j)
      if (j != i) others.push_back(group[j].after.value - group[j].before.value);
    const double reference = median(others);
    group[i].change = group[i].after.value - group[i].before.value - reference;
    group[i].reference_error = of_mean_error * of_median_deviation *
                               median_deviation(others, reference) /
                               std::sqrt(static_cast<double>(others.size()));
    group[i].others = static_cast<int>(others.size());
  }
}

// Standard errors of the changes of all rows on one thread, or on several: their three parts.
void set_errors(const std::vector<Pair*>& pairs) {
  // Visits vary by less in some rows by chance, so that no row counts as steadier than most.
  std::vector<double> spreads;
  for (const Pair* pair : pairs)
    for (const Estimate* estimate : {&pair->before, &pair->after})
      if (estimate->centers.size() > 1)
        spreads.push_back(std::abs(estimate->centers[0] - estimate->centers[1]) /
                          std::numbers::sqrt2);
  const double usual = spreads.empty() ? usual_spread : of_median_deviation * median(spreads);
  const auto variance = [&](const Estimate& estimate) {
    const auto visits = static_cast<double>(estimate.centers.size());
    const double spread = std::max(usual, standard_deviation(estimate.centers));
    return estimate.within * estimate.within + spread * spread / visits;
  };
  for (Pair* pair : pairs)
    pair->error = std::sqrt(variance(pair->before) + variance(pair->after) +
                            pair->reference_error * pair->reference_error);
  // The drift between the runs makes half of the changes as small as they should be.
  const auto median_score = [&](double drift) {
    std::vector<double> scores;
    for (const Pair* pair : pairs)
      scores.push_back(std::abs(pair->change) / std::hypot(pair->error, drift));
    return median(std::move(scores));
  };
  double low = least_drift, high = 1;
  if (pairs.size() >= least_rows_for_drift)
    for (int i = 0; i < 40; ++i) {
      const double middle = 0.5 * (low + high);
      (median_score(middle) > 1 / of_median_deviation ? low : high) = middle;
    }
  // Where the machine was quiet, most changes are smaller than their errors say, which allow for
  // visits that differ much; what most rows do not exceed is enough to call a row the same.
  const double usual_share =
      pairs.size() >= least_rows_for_drift
          ? std::clamp(of_median_deviation * median_score(low), least_usual_share, 1.0)
          : 1.0;
  for (Pair* pair : pairs) {
    const double own = std::hypot(pair->error, low);
    pair->error = own;
    pair->usual_error = usual_share * own;
    // Satterthwaite: few other rows tell little about the spread of their changes.
    const double reference = std::pow(pair->reference_error / own, 4);
    const double rest = std::pow(1 - std::pow(pair->reference_error / own, 2), 2);
    pair->degrees = std::min(
        most_degrees,
        static_cast<int>(1 / (reference / std::max(1, pair->others - 1) + rest / most_degrees)));
  }
}

struct Judged {
  double change = 0, error = 0, usual_error = 0;  // of the logarithm of the time
  int degrees = most_degrees;
  double of_medians = 0;  // the change of its own medians, where they have to agree
  bool has_medians = false;
  Judgement* judgement = nullptr;
  double p() const { return student_p(change / error, degrees); }
};

void judge(std::vector<Judged>& all, const ComparisonOptions& options) {
  // Holm: the smallest p of n counts n times, the next n - 1 times, and none less than the one
  // before.
  std::sort(all.begin(), all.end(), [](const Judged& a, const Judged& b) { return a.p() < b.p(); });
  const auto count = static_cast<double>(all.size());
  const double limit = std::log1p(options.threshold);
  double largest_p = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Judged& row = all[i];
    Judgement& judgement = *row.judgement;
    judgement.judged = true;
    const double half_width =
        student_critical(options.significance / count, row.degrees) * row.error;
    largest_p = std::max(largest_p, std::min(1.0, row.p() * (count - static_cast<double>(i))));
    judgement.p = largest_p;
    judgement.ratio = std::exp(row.change);
    judgement.low = std::exp(row.change - half_width);
    judgement.high = std::exp(row.change + half_width);
    // Two one-sided tests of this row alone: a wrong `same` is no false alarm.
    const double own_half_width =
        student_critical(same_significance, row.degrees) * row.usual_error;
    const bool differs = largest_p < options.significance && std::abs(row.change) > limit / 2;
    if (differs && row.has_medians && std::abs(row.change - row.of_medians) > half_width)
      judgement.reason = fmt::format("its own medians give {:.3f}: the other rows changed",
                                     std::exp(row.of_medians));
    else if (differs)
      judgement.change = row.change > 0 ? Change::slower : Change::faster;
    else if (std::abs(row.change) + own_half_width < limit)
      judgement.change = Change::same;
    else
      judgement.reason =
          fmt::format("known within {:.3f} to {:.3f} alone", std::exp(row.change - own_half_width),
                      std::exp(row.change + own_half_width));
  }
}

// The change of the medians of each row, minus that of the whole machine where many rows tell it.
void set_medians(std::vector<Judged>& judged, const std::vector<Pair>& pairs,
                 const std::vector<RowComparison>& rows) {
  std::vector<double> changes;
  for (const Pair& pair : pairs)
    changes.push_back(std::log(rows[pair.row].after_seconds / rows[pair.row].before_seconds));
  const double of_machine = changes.size() >= least_rows_for_drift ? median(changes) : 0;
  for (std::size_t i = 0; i < judged.size(); ++i) {
    judged[i].of_medians = changes[i] - of_machine;
    judged[i].has_medians = true;
  }
}

constexpr std::int64_t most = 1 << 20;

RowKey key_of(const CsvRow& row) {
  return {row.text("primitive"),           row.text("direction"),         row.text("problem"),
          row.integer("threads", 0, most), row.integer("ranks", 0, most), row.text("variant")};
}

std::filesystem::path plain_or_compressed(std::filesystem::path path) {
  std::filesystem::path compressed = path;
  compressed += ".gz";
  return !exists(path) && exists(compressed) ? compressed : path;
}

}  // namespace

const char* name_of(Change change) {
  constexpr const char* names[] = {"same", "slower", "faster", "cannot tell"};
  return names[static_cast<std::size_t>(change)];
}

Repetitions read_repetitions(const std::filesystem::path& run) {
  const CsvFile file(plain_or_compressed(run / "samples.csv"), samples_columns().names(), {},
                     LastLine::may_be_torn);
  if (!file.torn().empty())
    fmt::print(stderr, "{}: the last line is torn (no newline at its end); skipped\n", file.torn());
  constexpr std::int64_t most_rounds = std::int64_t{1} << 40U;
  Repetitions found;
  std::map<RowKey, std::size_t> all;
  for (const CsvRow& row : file.rows()) {
    const RowKey key = key_of(row);
    const std::string& text = row.text("seconds");
    const std::optional<double> seconds = number_in<double>(text);
    if (!seconds || !(*seconds > 0))
      row.fail(fmt::format("column seconds holds \"{}\"; expected a time", text));
    ++all[key];
    std::vector<Repetition>& repetitions = found[key];
    if (row.text("marked").empty())
      repetitions.push_back({row.integer("repetition", 0, most_rounds),
                             row.integer("visit", 0, most), std::log(*seconds), row.text("cores")});
  }
  for (auto& [key, repetitions] : found)
    if (repetitions.size() < std::min<std::size_t>(2, all[key]) ||
        2 * repetitions.size() < all[key])
      repetitions.clear();
  return found;
}

std::map<RowKey, std::string> read_failed(const std::filesystem::path& run) {
  const std::filesystem::path path = plain_or_compressed(run / "summary.csv");
  std::map<RowKey, std::string> failed;
  if (!exists(path)) return failed;
  const CsvFile file(
      path,
      {"primitive", "direction", "problem", "threads", "ranks", "variant", "status", "reason"},
      summary_columns().names());
  for (const CsvRow& row : file.rows())
    if (row.text("status") == "failed") failed[key_of(row)] = row.text("reason");
  return failed;
}

namespace {

// The mean without a fifth of the values at each end, which outliers do not move, and its standard
// error (Yuen 1974): from the variance of the values with both ends drawn in.
Judged trimmed_mean(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size(), cut = n / 5, kept = n - 2 * cut;
  const double mean = std::accumulate(values.begin() + static_cast<std::ptrdiff_t>(cut),
                                      values.end() - static_cast<std::ptrdiff_t>(cut), 0.0) /
                      static_cast<double>(kept);
  for (std::size_t i = 0; i < cut; ++i) {
    values[i] = values[cut];
    values[n - 1 - i] = values[n - 1 - cut];
  }
  const double error = std::max(standard_deviation(values) * std::sqrt(static_cast<double>(n - 1)) /
                                    std::sqrt(static_cast<double>(kept * (kept - 1))),
                                1e-9);
  return {mean, error, error, static_cast<int>(kept) - 1};
}

std::map<std::int64_t, double> centers_of(const std::vector<Repetition>& repetitions) {
  std::map<std::int64_t, std::vector<Repetition>> visits;
  for (const Repetition& repetition : repetitions) visits[repetition.visit].push_back(repetition);
  std::map<std::int64_t, double> centers;
  for (const auto& [visit, of_visit] : visits) centers[visit] = median_log(of_visit);
  return centers;
}

}  // namespace

Comparison compare_pairs(const Repetitions& before, const Repetitions& after,
                         const ComparisonOptions& options) {
  Comparison result;
  std::vector<Judged> judged;
  std::map<RowKey, std::map<std::int64_t, std::vector<double>>> by_rung;
  std::map<RowKey, int> problems;
  result.rows.reserve(before.size());
  for (const auto& [key, repetitions] : before) {
    const auto found = after.find(key);
    if (found == after.end()) continue;
    RowComparison& row = result.rows.emplace_back();
    row.key = key;
    const std::map<std::int64_t, double> old_centers = centers_of(repetitions),
                                         new_centers = centers_of(found->second);
    std::vector<double> changes;
    RowKey rung = key;
    rung.problem.clear();
    rung.direction.clear();
    for (const auto& [visit, center] : old_centers)
      if (const auto other = new_centers.find(visit); other != new_centers.end()) {
        changes.push_back(other->second - center);
        by_rung[rung][visit].push_back(changes.back());
      }
    if (changes.size() < least_pairs) {
      row.reason = fmt::format("fewer than {} pairs", least_pairs);
      continue;
    }
    ++problems[rung];
    row.before_seconds = std::exp(median_log(repetitions));
    row.after_seconds = std::exp(median_log(found->second));
    judged.push_back(trimmed_mean(std::move(changes)));
    judged.back().judgement = &row;
  }
  result.rungs.reserve(by_rung.size());
  for (const auto& [key, visits] : by_rung) {
    if (problems[key] < 2 || visits.size() < least_pairs) continue;
    std::vector<double> means;  // of the problems in a pair, which share its processes
    for (const auto& [visit, changes] : visits)
      means.push_back(std::accumulate(changes.begin(), changes.end(), 0.0) /
                      static_cast<double>(changes.size()));
    RungComparison& rung = result.rungs.emplace_back();
    rung.key = key;
    rung.problems = problems[key];
    judged.push_back(trimmed_mean(std::move(means)));
    judged.back().judgement = &rung;
  }
  judge(judged, options);
  return result;
}

Comparison compare_runs(const Repetitions& before, const Repetitions& after,
                        const ComparisonOptions& options) {
  std::vector<RowComparison> rows;
  std::vector<Pair> all;
  for (auto first = before.begin(); first != before.end();) {
    auto last = first;
    Group old_rows, new_rows;
    std::vector<std::size_t> present;
    for (; last != before.end() && last->first.same_group(first->first); ++last) {
      const auto found = after.find(last->first);
      if (found == after.end()) continue;
      rows.emplace_back().key = last->first;
      if (last->second.empty() || found->second.empty()) {
        rows.back().reason = "most repetitions were disturbed";
        continue;
      }
      if (last->second.size() < 2 || found->second.size() < 2) {
        rows.back().reason = "one repetition in a run; measure it longer, with --budget";
        continue;
      }
      rows.back().before_seconds = std::exp(median_log(last->second));
      rows.back().after_seconds = std::exp(median_log(found->second));
      present.push_back(rows.size() - 1);
      old_rows.push_back(last->second);
      new_rows.push_back(found->second);
    }
    const std::string cores = common_cores(old_rows, new_rows);
    std::vector<std::size_t> compared;
    Group old_compared, new_compared;
    for (std::size_t i = 0; i < present.size(); ++i) {
      const auto other_state = [&](const Repetition& repetition) {
        return repetition.cores != cores;
      };
      std::erase_if(old_rows[i], other_state);
      std::erase_if(new_rows[i], other_state);
      if (old_rows[i].size() < 2 || new_rows[i].size() < 2) {
        rows[present[i]].reason = "the cores were near in one run and far in the other";
        continue;
      }
      compared.push_back(present[i]);
      old_compared.push_back(std::move(old_rows[i]));
      new_compared.push_back(std::move(new_rows[i]));
    }
    if (compared.size() > least_others) {
      std::vector<Estimate> old_estimates = estimates(old_compared);
      std::vector<Estimate> new_estimates = estimates(new_compared);
      std::vector<Pair> group;
      for (std::size_t i = 0; i < compared.size(); ++i)
        group.push_back({.row = compared[i],
                         .before = std::move(old_estimates[i]),
                         .after = std::move(new_estimates[i])});
      set_changes(group);
      all.insert(all.end(), group.begin(), group.end());
    } else {
      for (const std::size_t row : compared)
        rows[row].reason = "fewer than two other rows of its problem to judge it beside";
    }
    first = last;
  }
  for (const bool several : {false, true}) {
    std::vector<Pair*> pairs;
    for (Pair& pair : all)
      if ((rows[pair.row].key.threads > 1 || rows[pair.row].key.ranks > 1) == several)
        pairs.push_back(&pair);
    if (!pairs.empty()) set_errors(pairs);
  }

  std::vector<Judged> judged;
  for (const Pair& pair : all)
    judged.push_back({.change = pair.change,
                      .error = pair.error,
                      .usual_error = pair.usual_error,
                      .degrees = pair.degrees,
                      .judgement = &rows[pair.row]});
  set_medians(judged, all, rows);
  judge(judged, options);

  // A rung over its problems.
  std::map<RowKey, std::vector<const Pair*>> by_rung;
  for (const Pair& pair : all) {
    RowKey key = rows[pair.row].key;
    key.problem.clear();
    key.direction.clear();
    by_rung[key].push_back(&pair);
  }
  std::vector<RungComparison> rungs;
  rungs.reserve(by_rung.size());
  judged.clear();
  for (const auto& [key, pairs] : by_rung) {
    if (pairs.size() < least_problems) continue;
    double weights = 0, sum = 0;
    for (const Pair* pair : pairs) {
      const double weight = 1 / (pair->error * pair->error);
      weights += weight;
      sum += weight * pair->change;
    }
    RungComparison& rung = rungs.emplace_back();
    rung.key = key;
    rung.problems = static_cast<int>(pairs.size());
    const double error = std::hypot(std::sqrt(1 / weights), least_drift);
    judged.push_back(
        {.change = sum / weights, .error = error, .usual_error = error, .judgement = &rung});
  }
  judge(judged, options);
  return {std::move(rows), std::move(rungs)};
}

}  // namespace stepladder
