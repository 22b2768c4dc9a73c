#include "harness/problem/within_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace stepladder {
namespace {

template <bool has_before, bool has_bounds>
bool all_within_of(const WithinBounds& r, double& error_ratio) {
  const auto error = [&](std::size_t i) {
    double got = r.got[i];
    if constexpr (has_before) got -= double{r.before[i]};
    return std::abs(got - r.value[i]);
  };
  const auto bound = [&](std::size_t i) {
    if constexpr (has_bounds) return double{r.bound[i]} * r.factor + r.more;
    return r.more;
  };
  constexpr std::size_t block = 1024;
  double ratio = error_ratio;
  for (std::size_t first = 0; first < r.value.size(); first += block) {
    const std::size_t last = std::min(first + block, r.value.size());
    std::int64_t inside = 0, larger = 0;
#pragma omp simd reduction(+ : inside, larger)
    for (std::size_t i = first; i < last; ++i) {
      inside += error(i) <= bound(i);
      larger += error(i) > ratio * bound(i);
    }
    if (inside != static_cast<std::int64_t>(last - first)) return false;
    for (std::size_t i = first; larger > 0 && i < last; ++i)  // seldom: / is slow
      if (bound(i) > 0 && error(i) > ratio * bound(i)) ratio = error(i) / bound(i);
  }
  error_ratio = ratio;
  return true;
}

}  // namespace

bool all_within(const WithinBounds& results, double& error_ratio) {
  const auto all =
      results.bound == nullptr
          ? (results.before == nullptr ? &all_within_of<false, false> : &all_within_of<true, false>)
          : (results.before == nullptr ? &all_within_of<false, true> : &all_within_of<true, true>);
  return all(results, error_ratio);
}

}  // namespace stepladder
