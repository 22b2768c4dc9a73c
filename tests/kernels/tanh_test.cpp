// tanh of every rung is near the exact one relative to its size, however small the argument: the
// bound of verification has an absolute part, which hides the small results.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/layers/layers.hpp"
#include "tests/kernels/rungs.hpp"

namespace stepladder::layers {
namespace {

TEST(Tanh, IsExactToAFewRoundingsFromTheSmallestNumberToInfinity) {
  std::vector<float> x{0.0F, 1e-45F, 1e-40F, std::numeric_limits<float>::max(),
                       std::numeric_limits<float>::infinity()};
  for (float value = 1e-36F; value < 40; value *= 1.0007F) x.push_back(value);
  const std::size_t positive = x.size();
  for (std::size_t i = 0; i < positive; ++i) x.push_back(-x[i]);
  x.push_back(std::numeric_limits<float>::quiet_NaN());
  const Problem problem{
      .layer = Layer::tanh, .batch = 1, .channels = static_cast<std::int64_t>(x.size())};
  std::vector<float> y(x.size());
  for (const Variant& variant : own_rungs(layers_type())) {
    plan_variant<Layers>(variant.entry, problem, {})->run({.x = x.data(), .y = y.data()});
    EXPECT_TRUE(std::isnan(y.back())) << variant.name;
    int wrong = 0;
    for (std::size_t i = 0; i + 1 < x.size(); ++i) {
      const double expected = std::tanh(double{x[i]});
      const double error = std::abs(double{y[i]} - expected);
      const bool is_near = error <= 6 * 0x1p-24 * std::abs(expected) + 0x1p-149;
      if ((!is_near || std::signbit(y[i]) != std::signbit(x[i])) && wrong++ == 0)
        ADD_FAILURE() << variant.name << ": tanh(" << x[i] << ") is " << y[i] << ", expected "
                      << expected;
    }
    EXPECT_EQ(wrong, 0) << variant.name;
  }
}

}  // namespace
}  // namespace stepladder::layers
