// How adapters fill operands and turn references into what is expected.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "harness/adapters/typed_case.hpp"

namespace stepladder {

// Exact tier: integers so small that `terms` products of two of them sum without rounding in fp32.
// Accuracy tier: uniform(-1, 1).
inline void fill_factor(Tier tier, double terms, Random& random, float* values,
                        std::int64_t count) {
  const auto largest =
      static_cast<std::int64_t>(std::clamp(std::floor(std::sqrt(0x1p24 / terms)), 1.0, 8.0));
  for (std::int64_t i = 0; i < count; ++i)
    values[i] = tier == Tier::exact ? static_cast<float>(random.integer(-largest, largest))
                                    : random.uniform(-1.0F, 1.0F);
}

// The bound of a sum of `terms` products: 0 in the exact tier.
inline void bound_sums(Tier tier, double terms, const std::vector<double>& magnitude,
                       Expected& expected) {
  expected.bound.resize(magnitude.size());
  const double factor = tier == Tier::exact ? 0.0 : gamma_bound(terms + 2);
  expected.unit = factor;
  for (std::size_t i = 0; i < magnitude.size(); ++i)
    expected.bound[i] =
        std::nextafter(static_cast<float>(factor * magnitude[i]),
                       tier == Tier::exact ? 0.0F : std::numeric_limits<float>::infinity());
}

}  // namespace stepladder
