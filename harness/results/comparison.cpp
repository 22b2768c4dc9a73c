#include "harness/results/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>
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
constexpr double least_drift = 0.003;  // between two runs; of the recorded runs in tests/compare
constexpr double usual_spread = 0.01;  // between visits, where no row has two

double median(std::vector<double> values) { return summarize(std::move(values)).median; }

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
  for (Pair* pair : pairs) pair->error = std::hypot(pair->error, low);
}

// P(|t| > x) of Student's t; its tails allow for errors that are estimated from few visits. The sum is
// exact for an even number of degrees of freedom.
double two_sided_p(double x) {
  constexpr int degrees = 12;
  const double angle = std::atan(x / std::sqrt(static_cast<double>(degrees)));
  const double cosine = std::cos(angle);
  double sum = 1, term = 1;
  for (int i = 2; i < degrees; i += 2) {
    term *= cosine * cosine * (i - 1) / i;
    sum += term;
  }
  return std::clamp(1 - std::sin(angle) * sum, 0.0, 1.0);
}

// The x for which two_sided_p is p.
double critical_value(double p) {
  double low = 0, high = 1e6;
  for (int i = 0; i < 200; ++i) {
    const double middle = 0.5 * (low + high);
    (two_sided_p(middle) > p ? low : high) = middle;
  }
  return high;
}

struct Judged {
  double change = 0, error = 0;  // of the logarithm of the time
  Judgement* judgement = nullptr;
};

void judge(std::vector<Judged>& all, const ComparisonOptions& options) {
  // Holm: the smallest p of n counts n times, the next n - 1 times, and none less than the one before.
  std::sort(all.begin(), all.end(), [](const Judged& a, const Judged& b) {
    return std::abs(a.change) / a.error > std::abs(b.change) / b.error;
  });
  const auto count = static_cast<double>(all.size());
  const double critical = all.empty() ? 0 : critical_value(options.significance / count);
  const double limit = std::log1p(options.threshold);
  double largest_p = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& [change, error, judgement] = all[i];
    const double p = two_sided_p(std::abs(change) / error);
    largest_p = std::max(largest_p, std::min(1.0, p * (count - static_cast<double>(i))));
    judgement->p = largest_p;
    judgement->ratio = std::exp(change);
    judgement->low = std::exp(change - critical * error);
    judgement->high = std::exp(change + critical * error);
    if (largest_p < options.significance && std::abs(change) > limit / 2)
      judgement->change = change > 0 ? Change::slower : Change::faster;
    else if (std::abs(change) + critical * error < limit)
      judgement->change = Change::same;
    else
      judgement->reason = fmt::format("its interval, {:.3f} to {:.3f}, is too wide", judgement->low,
                                      judgement->high);
  }
}

}  // namespace

const char* name_of(Change change) {
  constexpr const char* names[] = {"same", "slower", "faster", "cannot tell"};
  return names[static_cast<std::size_t>(change)];
}

Repetitions read_repetitions(const std::filesystem::path& run) {
  std::filesystem::path path = run / "samples.csv";
  if (!exists(path) && exists(run / "samples.csv.gz")) path += ".gz";
  const CsvFile file(path, samples_columns().names(), {}, LastLine::may_be_torn);
  if (!file.torn().empty())
    fmt::print(stderr, "{}: the last line is torn (no newline at its end); skipped\n", file.torn());
  constexpr std::int64_t most = 1 << 20, most_rounds = std::int64_t{1} << 40U;
  Repetitions found;
  std::map<RowKey, std::size_t> all;
  for (const CsvRow& row : file.rows()) {
    const RowKey key{row.text("primitive"),         row.text("direction"),
                     row.text("problem"),           row.integer("threads", 0, most),
                     row.integer("ranks", 0, most), row.text("variant")};
    const std::string text = row.text("seconds");
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
    if (repetitions.size() < 2 || 2 * repetitions.size() < all[key]) repetitions.clear();
  return found;
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
  for (const Pair& pair : all) judged.push_back({pair.change, pair.error, &rows[pair.row]});
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
    judged.push_back({sum / weights, std::hypot(std::sqrt(1 / weights), least_drift), &rung});
  }
  judge(judged, options);
  return {std::move(rows), std::move(rungs)};
}

}  // namespace stepladder
