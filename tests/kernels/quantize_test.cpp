// Steps of quantized operands, and the rungs that use them.
#include <gtest/gtest.h>

#include "tests/kernels/rungs.hpp"

#if defined(__x86_64__)

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/common/cpu/narrow/quantize.hpp"
#include "kernels/convolution/convolution.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder {
namespace {

narrow::Step step_for(float largest) {
  return narrow::step_of(std::bit_cast<std::uint32_t>(largest));
}

TEST(QuantizationStep, IsTheSmallestPowerOfTwoThatNeedsNoMoreThan127) {
  const float just_above = std::nextafter(127.0F / 64, 2.0F);
  for (const float fraction : {1.0F, 1.5F, 127.0F / 64, just_above, 1.99999F})
    for (int exponent = -110; exponent < 128; ++exponent) {
      const float largest = std::ldexp(fraction, exponent);
      const narrow::Step step = step_for(largest);
      int power = 0;
      EXPECT_EQ(std::frexp(step.size, &power), 0.5F) << largest;
      EXPECT_EQ(step.size * step.inverse, 1.0F) << largest;
      EXPECT_LE(largest * step.inverse, 127.0F) << largest;
      EXPECT_GT(largest * step.inverse * 2, 127.0F) << largest;
    }
}

TEST(QuantizationStep, OfZerosIsFiniteAndOfNumbersThatAreNoneIsNan) {
  EXPECT_GT(step_for(0.0F).size, 0.0F);
  EXPECT_TRUE(std::isfinite(step_for(0.0F).inverse));
  EXPECT_TRUE(std::isnan(step_for(std::numeric_limits<float>::infinity()).size));
  EXPECT_TRUE(std::isnan(step_for(std::numeric_limits<float>::quiet_NaN()).size));
}

std::vector<Variant> quantized_rungs(const PrimitiveType& type) {
  return rungs_here(type, [](const VariantInfo& info) {
    return info.precision == Precision::int8 && info.technique != Technique::vendor;
  });
}

TEST(QuantizedRungs, PassOnLongSumsAndOnShapesThatLeaveTilesUnfilled) {
  const std::vector<Variant> products = quantized_rungs(matmul_type()),
                             convolutions = quantized_rungs(convolution_type());
  if (products.empty() || convolutions.empty()) GTEST_SKIP() << "this CPU has no AVX512_VNNI";
  for (const int threads : {1, 3}) {
    for (const matmul::Problem& p : {matmul::Problem{1, 1, 1},
                                     {3, 50, 20000},  // sums are kept between blocks of K
                                     {90, 97, 9000},
                                     {200, 16, 64},
                                     {17, 300, 65}})
      EXPECT_EQ(expect_passed<matmul::Matmul>(p, products, threads), std::ssize(products));
    using convolution::Direction;
    for (const convolution::Problem& p :
         {convolution::Problem{Direction::forward, 2, 3, 35, 35, 20, 11, 11, 4, 4, 2, 2},
          {Direction::forward, 3, 1, 28, 28, 9, 5, 5, 1, 1, 2, 2},
          {Direction::forward, 1, 5, 9, 20, 17, 2, 3, 3, 5, 1, 4},  // strides above the kernel
          {Direction::forward, 2, 24, 7, 7, 6, 3, 3, 2, 2, 1, 1, 6},
          {Direction::forward, 1, 70, 5, 64, 33, 1, 1}})
      EXPECT_EQ(expect_passed<convolution::Convolution>(p, convolutions, threads),
                std::ssize(convolutions));
  }
}

// The step is of an image and group: a NaN in one does not reach the others.
TEST(QuantizedRungs, ANanReachesEveryPixelOfItsImageAlone) {
  const std::vector<Variant> rungs = quantized_rungs(convolution_type());
  if (rungs.empty()) GTEST_SKIP() << "this CPU has no AVX512_VNNI";
  const convolution::Problem p{convolution::Direction::forward, 2, 4, 6, 6, 8, 3, 3, 1, 1, 1, 1, 1};
  std::vector<float> x(2 * 4 * 36, 1.0F), w(8 * 4 * 9, 1.0F), y(2 * 8 * 36, 5.0F);
  x[40] = std::numeric_limits<float>::quiet_NaN();
  const convolution::Operands operands{x.data(), w.data(), y.data()};
  for (const Variant& rung : rungs) {
    const auto plan = plan_variant<convolution::Convolution>(rung.entry, p, {});
    plan->prepare(operands);
    plan->run(operands);
    for (std::size_t i = 0; i < y.size(); ++i)
      EXPECT_EQ(std::isnan(y[i]), i < y.size() / 2) << rung.name << " " << i;
  }
}

}  // namespace
}  // namespace stepladder

#endif
