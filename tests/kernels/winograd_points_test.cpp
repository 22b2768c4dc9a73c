// The one-dimensional transforms compute a correlation, here in floats, as in a GPU thread. (The
// tests of the rung winograd cover the CPU's vectors.)
#include "kernels/convolution/winograd_points.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/problem/random.hpp"

namespace stepladder::convolution {
namespace {

template <int pairs, int taps>
void expect_correlation() {
  using Points = WinogradPoints<float, pairs>;
  constexpr int tile = Points::tile, outputs = tile - taps + 1;
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    float row[tile], filter[taps], transformed[tile], evaluated[tile], products[tile], got[outputs];
    for (float& value : row) value = random.uniform(-1.0F, 1.0F);
    for (float& value : filter) value = random.uniform(-1.0F, 1.0F);
    Points::source(row, transformed);
    Points::evaluate(filter, evaluated);
    for (int i = 0; i < tile; ++i) products[i] = transformed[i] * evaluated[i];
    Points::combine(products, got);
    for (int i = 0; i < outputs; ++i) {
      double expected = 0;
      for (int j = 0; j < taps; ++j) expected += double{row[i + j]} * filter[j];
      ASSERT_NEAR(got[i], expected, 64 * 0x1p-24 * taps)
          << "output " << i << " of F(" << outputs << ", " << taps << ")";
    }
  }
}

TEST(WinogradPoints, ComputeACorrelation) {
  expect_correlation<2, 3>();
  expect_correlation<2, 5>();
  expect_correlation<3, 3>();
  expect_correlation<3, 5>();
  // backward_weights, where dy replaces the filter
  expect_correlation<2, 2>();
  expect_correlation<2, 4>();
  expect_correlation<3, 4>();
  expect_correlation<3, 6>();
}

}  // namespace
}  // namespace stepladder::convolution
