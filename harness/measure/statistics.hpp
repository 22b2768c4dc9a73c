// Order statistics of repeated timings, which a few slow repetitions do not move.
#pragma once

#include <span>
#include <vector>

namespace stepladder {

struct Summary {
  int count = 0;
  double median = 0;
  // 95 % confidence interval of the median from order statistics; below six values, the extremes.
  double ci_low = 0, ci_high = 0;
  double min = 0;
  double spread() const { return median > 0 ? (ci_high - ci_low) / median : 0; }
};

Summary summarize(std::vector<double> values);  // not empty

// Median and confidence interval of numerator[i] / denominator[i], over the i that both have.
Summary paired_ratio(std::span<const double> numerator, std::span<const double> denominator);

// p-value of the two-sided Mann-Whitney rank test. Normal approximation with tie and continuity
// correction; 1 when either is empty.
double rank_test(std::span<const double> a, std::span<const double> b);

}  // namespace stepladder
