// Order statistics of repeated timings: robust against the few slow repetitions a shared machine gives.
#pragma once

#include <span>
#include <vector>

namespace stepladder {

struct Summary {
  int count = 0;
  double median = 0;
  double ci_low = 0,
         ci_high = 0;  // 95 % for the median from order statistics; the extremes below six values
  double min = 0;
  double spread() const { return median > 0 ? (ci_high - ci_low) / median : 0; }
};

Summary summarize(std::vector<double> values);  // not empty

// Median and confidence interval of numerator[i] / denominator[i], over the pairs that both have.
Summary paired_ratio(std::span<const double> numerator, std::span<const double> denominator);

// Two-sided Mann-Whitney rank test: the probability of ranks so far apart if both samples came from
// one distribution. Normal approximation with tie and continuity correction; 1 when either is empty.
double rank_test(std::span<const double> a, std::span<const double> b);

}  // namespace stepladder
