#include "harness/measure/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <optional>

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

double percentile(std::span<const double> sorted, double percent) {
  const auto rank =
      static_cast<std::size_t>(std::ceil(percent * static_cast<double>(sorted.size()) / 100));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

double median(std::vector<double> values) { return summarize(std::move(values)).median; }

Summary paired_ratio(std::span<const double> numerator, std::span<const double> denominator) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(numerator.size(), denominator.size()); ++i)
    ratios.push_back(numerator[i] / denominator[i]);
  return ratios.empty() ? Summary{} : summarize(std::move(ratios));
}

Summary summarize_visits(const std::vector<std::vector<double>>& visits, const UsualSpread& usual) {
  std::vector<double> all, centers;
  for (const std::vector<double>& visit : visits) {
    all.insert(all.end(), visit.begin(), visit.end());
    centers.push_back(std::log(summarize(visit).median));
  }
  Summary summary = summarize(std::move(all));
  if (visits.size() < 2) return summary;
  const auto own_degrees = static_cast<double>(visits.size() - 1);
  const double own = standard_deviation(centers);
  const int degrees = usual.degrees + static_cast<int>(visits.size()) - 1;
  const double spread = std::sqrt(
      (usual.degrees * usual.deviation * usual.deviation + own_degrees * own * own) / degrees);
  const double half_width =
      student_critical(0.05, degrees) * spread / std::sqrt(static_cast<double>(visits.size()));
  summary.ci_low = std::min(summary.ci_low, summary.median * std::exp(-half_width));
  summary.ci_high = std::max(summary.ci_high, summary.median * std::exp(half_width));
  return summary;
}

namespace {

constexpr std::size_t least_rows = 20;

// Of the logarithms of times of two visits.
UsualSpread spread_of(std::vector<double> differences) {
  constexpr double percentile = 0.93, of_normal = 1.8119;  // of |x|, in standard deviations
  constexpr double most_degrees = UsualSpread{}.degrees;
  if (differences.empty()) return {};
  const double middle = median(differences);
  for (double& difference : differences) difference = std::abs(difference);
  const auto rows = static_cast<double>(differences.size());
  const auto at = differences.begin() + static_cast<std::ptrdiff_t>(percentile * (rows - 1));
  std::nth_element(differences.begin(), at, differences.end());
  const double deviation = *at / of_normal;  // of the difference of two visits
  // The median of rows that differ independently has pi / 2 / n of the variance.
  const double by_chance = std::numbers::pi / 2 / rows;
  const double share = deviation > 0 && differences.size() >= least_rows
                           ? std::clamp(std::pow(middle / deviation, 2) - by_chance, 0.0, 1.0)
                           : 0;
  return {deviation / std::numbers::sqrt2,
          static_cast<int>(std::lround(std::min(most_degrees, rows / (1 + (rows - 1) * share))))};
}

}  // namespace

void VisitDifferences::add(const std::string& group, std::size_t visit, double difference) {
  differences_[group][visit].push_back(difference);
}

UsualSpread VisitDifferences::usual(const std::string& group) const {
  std::optional<UsualSpread> widest;
  std::vector<double> all;
  for (const auto& [name, visits] : differences_)
    for (const auto& [visit, differences] : visits) {
      all.insert(all.end(), differences.begin(), differences.end());
      if (name != group || differences.size() < least_rows) continue;
      const UsualSpread found = spread_of(differences);
      if (!widest || found.deviation > widest->deviation) widest = found;
    }
  return widest ? *widest : spread_of(std::move(all));
}

double standard_deviation(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  if (n < 2) return 0;
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / (n - 1));
}

// The finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4.
double student_p(double x, int degrees) {
  const double angle = std::atan(std::abs(x) / std::sqrt(static_cast<double>(degrees)));
  const double cosine = std::cos(angle);
  const bool odd = degrees % 2 == 1;
  double term = odd ? cosine : 1, sum = degrees == 1 ? 0 : term;
  for (int i = odd ? 3 : 2; i < degrees; i += 2) {
    term *= cosine * cosine * (i - 1) / i;
    sum += term;
  }
  const double inside =
      odd ? (angle + std::sin(angle) * sum) * 2 / std::numbers::pi : std::sin(angle) * sum;
  return std::clamp(1 - inside, 0.0, 1.0);
}

double student_critical(double p, int degrees) {
  double low = 0, high = 1e6;
  for (int i = 0; i < 200; ++i) {
    const double middle = 0.5 * (low + high);
    (student_p(middle, degrees) > p ? low : high) = middle;
  }
  return high;
}

}  // namespace stepladder
