#include "harness/results/attribution.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace stepladder {
namespace {

// A sum of weighted logarithms of times, one weight for each corner.
class LogSum {
 public:
  explicit LogSum(std::span<const CornerTime> corners)
      : corners_(corners), weights_(corners.size()) {}

  // The gain of `bits` after `before`.
  void add(double weight, unsigned before, unsigned bits) {
    weights_[before] += weight;
    weights_[before | bits] -= weight;
  }

  Factor factor() const {
    double sum = 0, variance = 0;
    for (std::size_t i = 0; i < corners_.size(); ++i) {
      const CornerTime& corner = corners_[i];
      const double error = log_error(corner.ci_low, corner.ci_high);
      sum += weights_[i] * std::log(corner.seconds);
      variance += weights_[i] * weights_[i] * error * error;
    }
    const double half = two_sided_95 * std::sqrt(variance);
    return {std::exp(sum), std::exp(sum - half), std::exp(sum + half)};
  }

 private:
  std::span<const CornerTime> corners_;
  std::vector<double> weights_;
};

// size! (others - size)! / (others + 1)!: the share of the orders in which exactly these `size` of
// `others` techniques come before one more.
double share_of_orders(int size, int others) {
  double share = 1.0 / (others + 1);
  for (int i = 1; i <= size; ++i) share *= static_cast<double>(i) / (others - size + i);
  return share;
}

Attribution::Technique technique(std::span<const CornerTime> corners, int count, int i) {
  const unsigned bit = 1U << i, all = (1U << count) - 1;
  const auto gain_after = [&](unsigned before) {
    LogSum sum(corners);
    sum.add(1, before, bit);
    return sum.factor();
  };
  LogSum average(corners);
  Attribution::Technique found{.alone = gain_after(0),
                               .last = gain_after(all & ~bit),
                               .average = {},
                               .least = gain_after(0),
                               .most = gain_after(0),
                               .least_after = 0,
                               .most_after = 0};
  for (unsigned before = 0; before <= all; ++before) {
    if ((before & bit) != 0) continue;
    average.add(share_of_orders(std::popcount(before), count - 1), before, bit);
    const Factor gain = gain_after(before);
    if (gain.value < found.least.value) found.least = gain, found.least_after = before;
    if (gain.value > found.most.value) found.most = gain, found.most_after = before;
  }
  found.average = average.factor();
  return found;
}

Factor together(std::span<const CornerTime> corners, int count, unsigned first, unsigned second) {
  LogSum sum(corners);
  for (unsigned before = 0; before < 1U << count; ++before) {
    if ((before & (first | second)) != 0) continue;
    const double share = share_of_orders(std::popcount(before), count - 2);
    sum.add(share, before, first | second);
    sum.add(-share, before, first);
    sum.add(-share, before, second);
  }
  return sum.factor();
}

}  // namespace

double log_error(double low, double high) { return std::log(high / low) / (2 * two_sided_95); }

Attribution attribute(std::span<const CornerTime> corners) {
  const int count = std::countr_zero(corners.size());
  Attribution found;
  const auto gain_of = [&](unsigned bits) {
    LogSum sum(corners);
    sum.add(1, 0, bits);
    return sum.factor();
  };
  found.total = gain_of((1U << count) - 1);
  const auto fastest = std::ranges::min_element(corners, {}, &CornerTime::seconds);
  found.fastest_with = static_cast<unsigned>(fastest - corners.begin());
  found.fastest = gain_of(found.fastest_with);
  for (int i = 0; i < count; ++i) {
    found.techniques.push_back(technique(corners, count, i));
    for (int j = 0; j < i; ++j)
      found.pairs.push_back({j, i, together(corners, count, 1U << j, 1U << i)});
  }
  return found;
}

std::string names_of(unsigned bits, std::span<const std::string> names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if ((bits >> i & 1) == 0) continue;
    const bool is_last = bits >> (i + 1) == 0;
    text += (text.empty() ? "" : is_last ? " and " : ", ") + names[i];
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace stepladder
