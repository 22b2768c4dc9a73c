// The one-dimensional transforms give the correlation that they are derived for, in floats as a GPU's
// thread has them. (The CPU's vectors are proved with the rung winograd.)
#include "kernels/convolution/winograd_points.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/problem/random.hpp"

namespace stepladder::convolution {
namespace {

template <int pairs, int taps>
void expect_correlation() {
  using Points = WinogradPoints<float, pairs>;
  constexpr int tile = Points::tile, sums = tile - taps + 1;
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    float row[tile], filter[taps], transformed[tile], evaluated[tile], products[tile], got[sums];
    for (float& value : row) value = random.uniform(-1.0F, 1.0F);
    for (float& value : filter) value = random.uniform(-1.0F, 1.0F);
    Points::source(row, transformed);
    Points::evaluate(filter, evaluated);
    for (int i = 0; i < tile; ++i) products[i] = transformed[i] * evaluated[i];
    Points::combine(products, got);
    for (int i = 0; i < sums; ++i) {
      double expected = 0;
      for (int j = 0; j < taps; ++j) expected += double{row[i + j]} * filter[j];
      ASSERT_NEAR(got[i], expected, 64 * 0x1p-24 * taps)
          << "sum " << i << " of F(" << sums << ", " << taps << ")";
    }
  }
}

TEST(WinogradPoints, CombineTheProductsToACorrelation) {
  expect_correlation<2, 3>();
  expect_correlation<2, 5>();
  expect_correlation<3, 3>();
  expect_correlation<3, 5>();
  // of backward_weights, where the gradient takes the filter's place
  expect_correlation<2, 2>();
  expect_correlation<2, 4>();
  expect_correlation<3, 4>();
  expect_correlation<3, 6>();
}

}  // namespace
}  // namespace stepladder::convolution
