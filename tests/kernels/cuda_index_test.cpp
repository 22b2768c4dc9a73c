// The index arithmetic of the CUDA rungs, on the CPU: the function that computes the element of a
// GPU thread is called for every element and compared with the reference. Small integers make every
// sum exact. Launches and memory accesses are not tested here.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "harness/problem/random.hpp"
#include "kernels/common/cuda/fast_divisor.hpp"
#include "kernels/convolution/cuda/element.hpp"
#include "kernels/matmul/cuda/element.hpp"
#include "kernels/matmul/vendor/column_major.hpp"
#include "kernels/max_pool/cuda/element.hpp"
#include "kernels/sgd_update/cuda/element.hpp"
#include "tests/layouts.hpp"

namespace stepladder {
namespace {

std::vector<float> integers(Random& random, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(random.integer(-4, 4));
  return values;
}

template <class Got>
void expect_equal(const std::vector<Got>& got, const std::vector<double>& expected,
                  const std::string& problem) {
  ASSERT_EQ(got.size(), expected.size()) << problem;
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(double{got[i]}, expected[i]) << problem << ", element " << i;
}

matmul::Problem random_matmul(Random& random) {
  return {.m = random.integer(1, 20),
          .n = random.integer(1, 20),
          .k = random.integer(1, 20),
          .transpose_a = random.coin(),
          .transpose_b = random.coin()};
}

TEST(CudaIndex, AFastDivisorDivides) {
  Random random(5);
  constexpr std::int64_t most = (std::int64_t{1} << 31) - 1;
  for (int round = 0; round < 20000; ++round) {
    const auto d = random.integer(1, most >> random.integer(0, 30));
    const FastDivisor divisor(static_cast<std::uint32_t>(d));
    const auto multiple = random.integer(0, most / d) * d;
    for (const auto n : {multiple, multiple + d - 1, random.integer(0, most), most}) {
      if (n > most) continue;
      const auto [quotient, remainder] = divisor.divide(static_cast<std::uint32_t>(n));
      ASSERT_EQ(quotient, n / d) << n << " / " << d;
      ASSERT_EQ(remainder, n % d) << n << " / " << d;
    }
  }
}

// `compute` must set c to op(A) op(B), for random shapes and transposes.
template <class Compute>
void expect_products(const Compute& compute) {
  Random random(1);
  for (int round = 0; round < 60; ++round) {
    const matmul::Problem p = random_matmul(random);
    const std::vector<float> a = integers(random, p.m * p.k), b = integers(random, p.k * p.n);
    std::vector<float> c(static_cast<std::size_t>(p.m * p.n), NAN);
    const matmul::Operands operands{a.data(), b.data(), c.data()};
    compute(p, operands);
    std::vector<double> expected(c.size()), magnitude(c.size());
    matmul::reference(p, operands, expected.data(), magnitude.data());
    expect_equal(c, expected, matmul::shape(p));
  }
}

TEST(CudaIndex, AMatmulThreadComputesItsElement) {
  expect_products([](const matmul::Problem& p, const matmul::Operands& o) {
    for (std::int64_t i = 0; i < p.m; ++i)
      for (std::int64_t j = 0; j < p.n; ++j) o.c[i * p.n + j] = matmul::element(p, o, i, j);
  });
}

// Evaluates the call to cuBLAS as a column-major BLAS does.
TEST(CudaIndex, TheColumnMajorCallGivesTheRowMajorProduct) {
  expect_products([](const matmul::Problem& p, const matmul::Operands& o) {
    const matmul::ColumnMajorCall call = matmul::column_major(p, o);
    const auto at = [](std::int64_t row, std::int64_t column, std::int64_t stride,
                       bool transposed) {
      return transposed ? column + row * stride : row + column * stride;
    };
    for (std::int64_t column = 0; column < call.n; ++column)
      for (std::int64_t row = 0; row < call.m; ++row) {
        float sum = 0;
        for (std::int64_t l = 0; l < call.k; ++l)
          sum += call.a[at(row, l, call.lda, call.transpose_a)] *
                 call.b[at(l, column, call.ldb, call.transpose_b)];
        call.c[row + column * call.ldc] = sum;
      }
  });
}

convolution::Problem random_convolution(Random& random) {
  convolution::Problem p;
  p.groups = random.integer(1, 3);
  p.batch = random.integer(1, 3);
  p.in_channels = p.groups * random.integer(1, 3);
  p.out_channels = p.groups * random.integer(1, 3);
  p.kernel_h = random.integer(1, 5);
  p.kernel_w = random.integer(1, 5);
  p.stride_h = random.integer(1, 6);  // may exceed the filter: some inputs reach no output
  p.stride_w = random.integer(1, 6);
  p.pad_h = random.integer(0, p.kernel_h - 1);
  p.pad_w = random.integer(0, p.kernel_w - 1);
  p.height = random.integer(p.kernel_h, 12);
  p.width = random.integer(p.kernel_w, 12);
  p.layout = random.coin() ? convolution::Layout::nchw : convolution::Layout::nhwc;
  return p;
}

// `element(geometry, operands, index)` must equal the reference for all elements of the result.
template <class Element>
void expect_convolution(convolution::Direction direction, const Element& element) {
  Random random(2);
  for (int round = 0; round < 100; ++round) {
    convolution::Problem p = random_convolution(random);
    p.direction = direction;
    convolution::validate(p);
    std::vector<float> x = integers(random, p.x_count()), w = integers(random, p.w_count()),
                       y = integers(random, p.y_count());
    const convolution::Operands o{x.data(), w.data(), y.data()};
    const std::size_t count = direction == convolution::Direction::forward         ? y.size()
                              : direction == convolution::Direction::backward_data ? x.size()
                                                                                   : w.size();
    std::vector<double> expected(count), magnitude(count);
    convolution::reference(p, o, expected.data(), magnitude.data());
    const convolution::Geometry geometry(p);
    std::vector<float> got(count);
    for (std::size_t i = 0; i < count; ++i)
      got[i] = element(geometry, o, static_cast<std::int64_t>(i));
    expect_equal(got, expected, convolution::direction(p) + " " + convolution::shape(p));
  }
}

TEST(CudaIndex, AForwardConvolutionThreadComputesItsElement) {
  expect_convolution(convolution::Direction::forward, convolution::forward_element);
}

TEST(CudaIndex, ABackwardDataThreadGathersItsElement) {
  expect_convolution(convolution::Direction::backward_data, convolution::backward_data_element);
}

TEST(CudaIndex, ABackwardWeightsThreadComputesItsElement) {
  expect_convolution(convolution::Direction::backward_weights,
                     convolution::backward_weights_element);
}

// Few different integers, half of them negative: many ties, and windows without a positive value.
TEST(CudaIndex, APoolingThreadComputesItsMaximumAndItsGradient) {
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    const auto p = random_windows<max_pool::Problem>(random);
    const max_pool::Geometry geometry(p);
    const std::vector<float> x = integers(random, p.x_count()), dy = integers(random, p.y_count());

    std::vector<double> y(dy.size());
    std::vector<std::uint8_t> argmax(dy.size());
    max_pool::reference_forward(p, x.data(), nullptr, y.data(), argmax.data());
    std::vector<float> value(dy.size());
    std::vector<std::uint8_t> position(dy.size());
    for (std::size_t i = 0; i < value.size(); ++i) {
      const auto maximum =
          max_pool::forward_element(geometry, x.data(), static_cast<std::int64_t>(i));
      value[i] = maximum.value;
      position[i] = maximum.position;
    }
    expect_equal(value, y, max_pool::shape(p));
    ASSERT_EQ(position, argmax) << max_pool::shape(p);

    std::vector<double> expected(x.size()), magnitude(x.size());
    max_pool::reference_backward(p, dy.data(), argmax.data(), nullptr, expected.data(),
                                 magnitude.data());
    std::vector<float> dx(x.size());
    for (std::size_t i = 0; i < dx.size(); ++i)
      dx[i] = max_pool::backward_element(geometry, dy.data(), argmax.data(),
                                         static_cast<std::int64_t>(i));
    expect_equal(dx, expected, max_pool::shape(p));
  }
}

TEST(CudaIndex, AnUpdateThreadUpdatesItsWeightAndState) {
  using sgd_update::Optimizer;
  Random random(4);
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::momentum, Optimizer::adagrad,
                                    Optimizer::adadelta, Optimizer::rmsprop, Optimizer::adam})
    for (int round = 0; round < 100; ++round) {
      const sgd_update::Problem p{
          .optimizer = optimizer, .count = 1, .weight_decay = random.coin() ? 0.25F : 0.0F};
      // Positive operands do not cancel: rounding errors stay relative.
      const float weight = random.uniform(0.01F, 0.1F), gradient = random.uniform(0.1F, 1.0F);
      const float state1 = random.uniform(0.1F, 1.0F), state2 = random.uniform(0.1F, 1.0F);
      const std::int64_t step = random.integer(1, 50);
      const float learning_rate = 0.125F;

      float new_weight = weight, new_state1 = state1, new_state2 = state2;
      const sgd_update::Operands o{&new_weight, &gradient,     &new_state1,
                                   &new_state2, learning_rate, step};
      sgd_update::update_element(p, o, sgd_update::BiasCorrection(p, step), 0);

      const sgd_update::Element expected =
          sgd_update::reference(p, weight, gradient, state1, state2, learning_rate, step);
      constexpr double few_roundings = 16 * 0x1p-24;
      const double change = double{new_weight} - double{weight};
      ASSERT_NEAR(change, expected.change,
                  few_roundings * std::abs(expected.change) + 0x1p-24 * std::abs(new_weight))
          << sgd_update::name_of(optimizer) << ", step " << step;
      ASSERT_NEAR(new_state1, expected.state1, few_roundings * std::abs(expected.state1))
          << sgd_update::name_of(optimizer);
      ASSERT_NEAR(new_state2, expected.state2, few_roundings * std::abs(expected.state2))
          << sgd_update::name_of(optimizer);
    }
}

}  // namespace
}  // namespace stepladder
