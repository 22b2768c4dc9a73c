// The comparison of results that verification spends its time in.
#pragma once

#include <span>

namespace stepladder {

struct WithinBounds {
  const float* got;               // as many as values
  const float* before;            // subtracted from got, unless null
  std::span<const double> value;  // expected
  const float* bound;             // of each element; null: zeros
  double factor;                  // of the bounds
  double more;                    // added to each of them
};

// Whether |got - value| <= bound·factor + more in every element: NaN is not. Then raises
// error_ratio to the largest quotient of the two sides, where the right one is not 0.
bool all_within(const WithinBounds& results, double& error_ratio);

}  // namespace stepladder
