// Times of rows beside the other rows of their problem, which took turns with them: the drift of
// the machine cancels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepladder {

// Of normal values: standard deviation over median deviation, and standard error of a median over
// that of a mean.
inline constexpr double of_median_deviation = 1.4826, of_mean_error = 1.2533;
inline constexpr std::size_t least_others = 2;  // rows of a problem that a row can be judged beside

// An undisturbed repetition.
struct Repetition {
  std::int64_t round = 0, visit = 0;
  double log_seconds = 0;
  std::string cores;  // of several threads; see samples.csv
};

// Rows of one problem, in one run.
using Group = std::vector<std::vector<Repetition>>;

double median_log(const std::vector<Repetition>& repetitions);  // not empty

// The logarithm of the time of a row in one run. The drift of a round, the median deviation of the
// other rows from their own medians, is taken off.
struct Estimate {
  double value = 0;
  double within = 0;            // standard error from the spread of repetitions within visits
  std::vector<double> centers;  // of the visits
};

std::vector<Estimate> estimates(const Group& group);  // no row of it is empty

}  // namespace stepladder
