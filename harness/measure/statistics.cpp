#include "harness/measure/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace stepladder {
namespace {

double middle(const std::vector<double>& sorted) {
  const std::size_t n = sorted.size();
  return n % 2 == 1 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
}

// The largest r >= 1 for which [x(r), x(n+1-r)] covers the median with at least 95 %: the tail
// P(Binomial(n, 1/2) < r) is at most 2.5 %. 0 when even the extremes do not cover it (n < 6).
std::size_t interval_rank(std::size_t n) {
  double log_term = -std::log(2.0) * static_cast<double>(n), tail = 0;  // 0.5^n would underflow
  std::size_t rank = 0;
  for (std::size_t k = 0; k < n; ++k) {
    tail += std::exp(log_term);
    if (tail > 0.025) break;
    rank = k + 1;
    log_term += std::log(static_cast<double>(n - k) / static_cast<double>(k + 1));
  }
  return rank;
}

}  // namespace

Summary summarize(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size(), rank = std::max<std::size_t>(interval_rank(n), 1);
  return {.count = static_cast<int>(n),
          .median = middle(values),
          .ci_low = values[rank - 1],
          .ci_high = values[n - rank],
          .min = values.front()};
}

Summary paired_ratio(std::span<const double> numerator, std::span<const double> denominator) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(numerator.size(), denominator.size()); ++i)
    ratios.push_back(numerator[i] / denominator[i]);
  return ratios.empty() ? Summary{} : summarize(std::move(ratios));
}

double rank_test(std::span<const double> a, std::span<const double> b) {
  if (a.empty() || b.empty()) return 1;
  struct Value {
    double value;
    bool of_a;
  };
  std::vector<Value> all;
  for (const double v : a) all.push_back({v, true});
  for (const double v : b) all.push_back({v, false});
  std::sort(all.begin(), all.end(),
            [](const Value& x, const Value& y) { return x.value < y.value; });

  const auto n = static_cast<double>(all.size());
  const auto n_a = static_cast<double>(a.size()), n_b = static_cast<double>(b.size());
  double rank_sum = 0, ties = 0;
  for (std::size_t first = 0; first < all.size();) {
    std::size_t last = first;
    while (last < all.size() && all[last].value == all[first].value) ++last;
    const auto tied = static_cast<double>(last - first);
    const double rank = 0.5 * static_cast<double>(first + 1 + last);
    for (std::size_t i = first; i < last; ++i) rank_sum += all[i].of_a ? rank : 0;
    ties += tied * tied * tied - tied;
    first = last;
  }
  const double u = rank_sum - n_a * (n_a + 1) / 2;
  const double variance = n_a * n_b / 12 * (n + 1 - ties / (n * (n - 1)));
  if (!(variance > 0)) return 1;
  const double distance = std::max(0.0, std::abs(u - n_a * n_b / 2) - 0.5);
  return std::erfc(distance / std::sqrt(variance) / std::sqrt(2.0));
}

}  // namespace stepladder
