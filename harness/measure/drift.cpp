#include "harness/measure/drift.hpp"

#include <cmath>
#include <map>
#include <utility>

#include "harness/measure/statistics.hpp"

namespace stepladder {
double median_log(const std::vector<Repetition>& repetitions) {
  std::vector<double> values;
  for (const Repetition& repetition : repetitions) values.push_back(repetition.log_seconds);
  return median(std::move(values));
}

std::vector<Estimate> estimates(const Group& group) {
  // The deviation of each repetition from the median of its row, by round.
  std::map<std::int64_t, std::vector<std::pair<std::size_t, double>>> rounds;
  for (std::size_t row = 0; row < group.size(); ++row) {
    const double center = median_log(group[row]);
    for (const Repetition& repetition : group[row])
      rounds[repetition.round].emplace_back(row, repetition.log_seconds - center);
  }
  const auto drift = [&](std::size_t row, std::int64_t round) {
    std::vector<double> others;
    for (const auto& [other, deviation] : rounds[round])
      if (other != row) others.push_back(deviation);
    return others.size() > least_others ? median(std::move(others)) : 0.0;
  };
  std::vector<Estimate> found;
  for (std::size_t row = 0; row < group.size(); ++row) {
    std::map<std::int64_t, std::vector<double>> visits;
    std::vector<double> all, deviations;
    Estimate estimate;
    for (const Repetition& repetition : group[row])
      visits[repetition.visit].push_back(repetition.log_seconds - drift(row, repetition.round));
    for (const auto& [visit, values] : visits) {
      estimate.centers.push_back(median(values));
      all.insert(all.end(), values.begin(), values.end());
      for (const double value : values)
        deviations.push_back(std::abs(value - estimate.centers.back()));
    }
    const auto count = static_cast<double>(all.size());
    estimate.value = median(all);
    // Few repetitions tell little about their own spread.
    estimate.within = of_mean_error * of_median_deviation * median(deviations) / std::sqrt(count) *
                      (1 + 2 / count);
    found.push_back(std::move(estimate));
  }
  return found;
}

}  // namespace stepladder
