// Faults of layers are found in each operand that a layer writes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/adapters/primitives.hpp"
#include "kernels/layers/layers.hpp"
#include "tests/verdict.hpp"

namespace stepladder::layers {
namespace {

Problem problem_of(Layer layer, Direction direction) {
  return {.layer = layer,
          .direction = direction,
          .batch = 3,
          .channels = 5,
          .spatial = layer == Layer::softmax_cross_entropy ? 1 : 7,
          .seed = 11};
}

void relu_of_magnitude(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.count(); ++i) o.y[i] = std::abs(o.x[i]);
}
void relu_tail(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.count() / 8 * 8; ++i) o.y[i] = std::max(o.x[i], 0.0F);
}
void relu_in_place(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.count(); ++i) o.y[i] = o.x[i] = std::max(o.x[i], 0.0F);
}
void relu_past_the_end(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i <= p.count(); ++i) o.y[i] = std::max(o.x[i], 0.0F);
}
void bias_along_the_wrong_axis(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.count(); ++i) o.y[i] += o.bias[i % p.channels];
}
void bias_gradient_not_cleared(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.count(); ++i) o.dbias[i / p.spatial % p.channels] += o.dy[i];
}
void dropout_not_scaled(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.count(); ++i) {
    const std::uint32_t hash =
        dropout_hash(dropout_key(p.seed, o.step), static_cast<std::uint32_t>(i));
    o.y[i] = hash >= drop_threshold(p.rate) ? o.x[i] : 0;
  }
}
void dropout_with_a_mask_of_its_own(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.count(); ++i) o.y[i] = i % 2 == 0 ? o.x[i] / (1 - p.rate) : 0;
}
void softmax(const Problem& p, const Operands& o, int shift, float divisor) {
  for (std::int64_t n = 0; n < p.batch; ++n) {
    float sum = 0;
    for (std::int64_t c = 0; c < p.channels; ++c) sum += std::exp(o.x[n * p.channels + c]);
    for (std::int64_t c = 0; c < p.channels; ++c)
      o.y[n * p.channels + c] = std::exp(o.x[n * p.channels + c]) / sum;
    o.loss[n] = -std::log(o.y[n * p.channels + (o.labels[n] + shift) % p.channels]);
  }
  for (std::int64_t i = 0; i < p.count(); ++i)
    o.dx[i] = (o.y[i] - (i % p.channels == o.labels[i / p.channels] ? 1.0F : 0.0F)) / divisor;
}
void loss_of_the_next_label(const Problem& p, const Operands& o) {
  softmax(p, o, 1, static_cast<float>(p.batch));
}
void gradient_not_divided_by_the_batch(const Problem& p, const Operands& o) { softmax(p, o, 0, 1); }
void tanh_gradient_of_sigmoid(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.count(); ++i) o.dx[i] = o.dy[i] * o.y[i] * (1 - o.y[i]);
}
void sigmoid_is_nan(const Problem& p, const Operands& o) {
  std::fill_n(o.y, p.count(), std::numeric_limits<float>::quiet_NaN());
}

constexpr Direction forward = Direction::forward, backward = Direction::backward;

const Fault<Layers> faults[] = {
    {"broken_sign", problem_of(Layer::relu, forward), plan_of<relu_of_magnitude>, "y["},
    {"broken_tail", problem_of(Layer::relu, forward), plan_of<relu_tail>, "y[2, 4, 6] is "},
    {"broken_input", problem_of(Layer::relu, forward), plan_of<relu_in_place>,
     "input x was changed"},
    {"broken_past", problem_of(Layer::relu, forward), plan_of<relu_past_the_end>,
     "y was written out of bounds, "},
    {"broken_axis", problem_of(Layer::bias, forward), plan_of<bias_along_the_wrong_axis>, "y["},
    {"broken_accumulates", problem_of(Layer::bias, backward), plan_of<bias_gradient_not_cleared>,
     "dbias[0] is "},
    {"broken_scale", problem_of(Layer::dropout, forward), plan_of<dropout_not_scaled>, "y["},
    {"broken_mask", problem_of(Layer::dropout, forward), plan_of<dropout_with_a_mask_of_its_own>,
     "y["},
    {"broken_label", problem_of(Layer::softmax_cross_entropy, forward),
     plan_of<loss_of_the_next_label>, "loss["},
    {"broken_mean", problem_of(Layer::softmax_cross_entropy, forward),
     plan_of<gradient_not_divided_by_the_batch>, "dx["},
    {"broken_rule", problem_of(Layer::tanh, backward), plan_of<tanh_gradient_of_sigmoid>, "dx["},
    {"broken_nan", problem_of(Layer::sigmoid, forward), plan_of<sigmoid_is_nan>,
     "y[0, 0, 0] is nan; expected"},
};

TEST(VerifyCatchesLayers, Faults) {
  for (const auto& fault : faults) EXPECT_TRUE(fault.is_caught());
}

// It writes its gradient in the forward direction.
TEST(VerifyCatchesLayers, NoRungSupportsABackwardSoftmax) {
  const Problem problem = problem_of(Layer::softmax_cross_entropy, backward);
  int rungs = 0;
  for (const Variant& variant : primitive(Layers::name).variants()) {
    if (variant.info->place != Place::cpu || !variant.why_unavailable.empty()) continue;
    ++rungs;
    const Verdict verdict = verdict_of<Layers>(problem, variant);
    EXPECT_EQ(verdict.outcome, Outcome::unavailable) << variant.name;
    EXPECT_EQ(verdict.reason, "softmax computes its gradient in its forward pass") << variant.name;
  }
  EXPECT_GT(rungs, 0);
}

TEST(VerifyCatchesLayers, NothingInCorrectKernels) {
  for (const Layer layer : {Layer::bias, Layer::relu, Layer::sigmoid, Layer::tanh, Layer::dropout,
                            Layer::local_response_normalization, Layer::softmax_cross_entropy})
    for (const Direction direction : {forward, backward}) {
      if (!has(layer, direction)) continue;
      EXPECT_TRUE(first_rungs_pass<Layers>(problem_of(layer, direction)));
    }
}

}  // namespace
}  // namespace stepladder::layers
