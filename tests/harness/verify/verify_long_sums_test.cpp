// Sums of 2^24 terms and more: correct kernels pass, and one lost term is found.
#include <vector>

#include "harness/adapters/primitives.hpp"
#include "kernels/average_pool/average_pool.hpp"
#include "kernels/convolution/convolution.hpp"
#include "kernels/layers/layers.hpp"
#include "kernels/matmul/matmul.hpp"
#include "kernels/max_pool/max_pool.hpp"
#include "tests/verdict.hpp"

namespace stepladder {
namespace {

constexpr std::int64_t long_sum = 1 << 24;

// Sums in fp32, one after the other, all terms but `lost`.
template <class Term>
float sum_of(std::int64_t terms, std::int64_t lost, const Term& term) {
  float sum = 0;
  for (std::int64_t i = 0; i < terms; ++i)
    if (i != lost) sum += term(i);
  return sum;
}

// One sum from each primitive, whose term in the middle may be lost.
template <bool loses>
struct Sums {
  static constexpr std::int64_t lost(std::int64_t terms) { return loses ? terms / 2 : -1; }

  static void product(const matmul::Problem& p, const matmul::Operands& o) {
    *o.c = sum_of(p.k, lost(p.k), [&](std::int64_t i) { return o.a[i] * o.b[i]; });
  }
  static void weight_gradient(const convolution::Problem& p, const convolution::Operands& o) {
    const std::int64_t n = p.y_count();
    *o.w = sum_of(n, lost(n), [&](std::int64_t i) { return o.x[i] * o.y[i]; });
  }
  static void bias_gradient(const layers::Problem& p, const layers::Operands& o) {
    *o.dbias = sum_of(p.spatial, lost(p.spatial), [&](std::int64_t i) { return o.dy[i]; });
  }
  static void average(const average_pool::Problem& p, const average_pool::Operands& o) {
    const std::int64_t n = p.x_count();
    *o.y = sum_of(n, lost(n), [&](std::int64_t i) { return o.x[i]; }) / static_cast<float>(n);
  }
  // Half of the terms are masked. The windows are single elements.
  static void pooled_bias_gradient(const max_pool::Problem& p, const max_pool::Operands& o) {
    const auto gradient = [&](std::int64_t i) { return o.forward_y[i] > 0 ? o.y[i] : 0; };
    std::int64_t last = p.y_count() - 1;
    while (gradient(last) == 0) --last;
    *o.dbias = sum_of(p.y_count(), loses ? last : -1, gradient);
    for (std::int64_t i = 0; i < p.x_count(); ++i) o.x[i] = gradient(i);
  }
};

template <class Primitive, auto correct, auto wrong>
void expect_only_the_lost_term(const typename Primitive::Problem& problem, const char* reason) {
  const std::unique_ptr<Case> owned = make_case<Primitive>(problem, "test", "test");
  const std::vector<Verdict> verdicts =
      verdicts_of(*owned, {unregistered<Primitive>("correct", plan_of<correct>),
                           unregistered<Primitive>("broken", plan_of<wrong>)});
  EXPECT_EQ(verdicts[0].outcome, Outcome::passed) << verdicts[0].reason;
  EXPECT_EQ(verdicts[1].outcome, Outcome::failed);
  EXPECT_TRUE(says(verdicts[1].reason, {reason}));
}

TEST(VerifyLongSums, Matmul) {
  EXPECT_TRUE(first_rungs_pass<matmul::Matmul>({1, 1, long_sum - 1}));
  expect_only_the_lost_term<matmul::Matmul, Sums<false>::product, Sums<true>::product>(
      {1, 1, long_sum + 3}, "c[0, 0] is ");
}

TEST(VerifyLongSums, Convolution) {
  expect_only_the_lost_term<convolution::Convolution, Sums<false>::weight_gradient,
                            Sums<true>::weight_gradient>(
      {.direction = convolution::Direction::backward_weights,
       .batch = 2,
       .in_channels = 1,
       .height = 4096,
       .width = 2048 + 1,
       .out_channels = 1,
       .kernel_h = 1,
       .kernel_w = 1},
      "dw[0, 0, 0, 0] is ");
}

TEST(VerifyLongSums, Layers) {
  expect_only_the_lost_term<layers::Layers, Sums<false>::bias_gradient, Sums<true>::bias_gradient>(
      {.layer = layers::Layer::bias,
       .direction = layers::Direction::backward,
       .batch = 1,
       .channels = 1,
       .spatial = long_sum + 3},
      "dbias[0] is ");
}

// The divisor of a softmax is a sum over channels.
TEST(VerifyLongSums, Softmax) {
  EXPECT_TRUE(first_rungs_pass<layers::Layers>(
      {.layer = layers::Layer::softmax_cross_entropy, .batch = 1, .channels = 1 << 21}));
}

TEST(VerifyLongSums, AveragePool) {
  expect_only_the_lost_term<average_pool::AveragePool, Sums<false>::average, Sums<true>::average>(
      {.batch = 1,
       .channels = 1,
       .height = 4096,
       .width = 4096,
       .window_h = 4096,
       .window_w = 4096},
      "y[0, 0, 0, 0] is ");
}

TEST(VerifyLongSums, MaxPool) {
  expect_only_the_lost_term<max_pool::MaxPool, Sums<false>::pooled_bias_gradient,
                            Sums<true>::pooled_bias_gradient>(
      {.direction = max_pool::Direction::backward,
       .batch = 1,
       .channels = 1,
       .height = 2048,
       .width = 4096 + 1,
       .window_h = 1,
       .window_w = 1,
       .epilogue = max_pool::Epilogue::bias_relu},
      "dbias[0] is ");
}

}  // namespace
}  // namespace stepladder
