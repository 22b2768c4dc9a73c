// The layers' references against central differences: backward is the gradient of forward.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/layers/layers.hpp"

namespace stepladder::layers {
namespace {

using Doubles = std::vector<double>;

constexpr std::int64_t step = 3;
// Inputs are multiples of 1/256 up to 2: x + h and x − h are exact floats.
constexpr float h = 0x1p-10F;

struct Forward {
  Doubles y, dx, loss;
};

class Gradient : public testing::TestWithParam<Problem> {
 protected:
  void SetUp() override {
    std::mt19937 random(20);
    std::uniform_int_distribution<int> quarter(1, 512);
    const auto count = static_cast<std::size_t>(p_.count());
    for (std::size_t i = 0; i < count; ++i) {
      const float magnitude =
          static_cast<float>(quarter(random)) / 256;  // never 0, where relu has no derivative
      x_.push_back(random() % 2 == 0 ? magnitude : -magnitude);
      dy_.push_back(static_cast<float>(quarter(random)) / 256 - 1);
    }
    for (std::int64_t c = 0; c < p_.channels; ++c)
      bias_.push_back(static_cast<float>(quarter(random)) / 256);
    for (std::int64_t n = 0; n < p_.batch; ++n)
      labels_.push_back(static_cast<std::uint8_t>(random() % static_cast<unsigned>(p_.channels)));
  }

  Forward forward() {
    Forward result;
    result.y.assign(x_.begin(), x_.end());  // bias adds to what y holds
    result.loss.resize(labels_.size());
    result.dx.resize(x_.size());
    Problem problem = p_;
    problem.direction = Direction::forward;
    const Operands operands{
        .x = x_.data(), .bias = bias_.data(), .labels = labels_.data(), .step = step};
    reference(problem, operands,
              {.y = result.y.data(), .dx = result.dx.data(), .loss = result.loss.data()});
    return result;
  }

  // The function that is differentiated: the mean loss, or for other layers the sum of y · dy.
  double objective() {
    const Forward f = forward();
    double sum = 0;
    if (p_.layer == Layer::softmax_cross_entropy) {
      for (const double loss : f.loss) sum += loss / static_cast<double>(p_.batch);
    } else {
      for (std::size_t i = 0; i < f.y.size(); ++i) sum += f.y[i] * dy_[i];
    }
    return sum;
  }

  double central_difference(float& variable) {
    const float before = variable;
    variable = before + h;
    const double above = objective();
    variable = before - h;
    const double below = objective();
    variable = before;
    return (above - below) / (2 * double{h});
  }

  Problem p_ = GetParam();
  std::vector<float> x_, dy_, bias_;
  std::vector<std::uint8_t> labels_;
};

TEST_P(Gradient, IsTheCentralDifferenceOfForward) {
  const Forward f = forward();
  std::vector<float> y(f.y.begin(), f.y.end());
  Doubles dx = f.dx, dbias(bias_.size()), magnitude(std::max(x_.size(), bias_.size()));
  Problem problem = p_;
  problem.direction = Direction::backward;
  const Operands operands{
      .x = x_.data(), .y = y.data(), .dy = dy_.data(), .labels = labels_.data(), .step = step};
  if (has(p_.layer, Direction::backward))
    reference(problem, operands,
              {.dx = dx.data(), .dbias = dbias.data(), .magnitude = magnitude.data()});

  const bool is_bias = p_.layer == Layer::bias;
  std::vector<float>& variables = is_bias ? bias_ : x_;
  const Doubles& gradient = is_bias ? dbias : dx;
  for (std::size_t i = 0; i < variables.size(); ++i)
    EXPECT_NEAR(central_difference(variables[i]), gradient[i], 4e-6)
        << direction(problem) << " element " << i;
}

Problem problem(Layer layer, std::int64_t batch, std::int64_t channels, std::int64_t spatial) {
  return {.layer = layer, .batch = batch, .channels = channels, .spatial = spatial};
}

Problem strong_normalization(std::int64_t channels, std::int64_t size, float beta) {
  Problem p = problem(Layer::local_response_normalization, 2, channels, 3);
  p.size = size;
  p.alpha = 0.5F;  // the term of the window must be comparable to the direct one
  p.beta = beta;
  p.k = 1;
  return p;
}

Problem dropout(float rate) {
  Problem p = problem(Layer::dropout, 2, 5, 7);
  p.rate = rate;
  p.seed = 1234567890123;
  return p;
}

INSTANTIATE_TEST_SUITE_P(
    Layers, Gradient,
    testing::Values(problem(Layer::bias, 3, 5, 1), problem(Layer::bias, 2, 4, 6),
                    problem(Layer::relu, 2, 3, 5), problem(Layer::sigmoid, 2, 3, 5),
                    problem(Layer::tanh, 2, 3, 5), dropout(0), dropout(0.3F),
                    problem(Layer::local_response_normalization, 2, 7, 3),
                    strong_normalization(7, 5, 0.75F), strong_normalization(2, 5, 0.75F),
                    strong_normalization(6, 3, 1.25F), strong_normalization(4, 1, 0.5F),
                    problem(Layer::softmax_cross_entropy, 4, 10, 1),
                    problem(Layer::softmax_cross_entropy, 3, 1, 1)),
    [](const auto& test) {
      return std::string(name_of(test.param.layer)) + "_" + std::to_string(test.index);
    });

TEST(Dropout, KeepsTheExpectedFractionAndScalesIt) {
  Problem p = problem(Layer::dropout, 1, 1, 100000);
  p.rate = 0.25F;
  const auto count = static_cast<std::size_t>(p.count());
  const std::vector<float> x(count, 3.0F);
  Doubles y(count);
  Operands operands{.x = const_cast<float*>(x.data())};
  double kept_before = -1;
  for (operands.step = 1; operands.step <= 3; ++operands.step) {
    reference(p, operands, {.y = y.data()});
    double kept = 0, first_half = 0;
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(y[i] == 0 || y[i] == 4);  // 3 / (1 − 1/4)
      kept += y[i] / 4;
      if (i < count / 2) first_half += y[i] / 4;
    }
    EXPECT_NEAR(kept / static_cast<double>(count), 0.75, 0.01);
    EXPECT_NEAR(first_half / static_cast<double>(count), 0.375, 0.01);
    EXPECT_NE(kept, kept_before) << "every step draws a new mask";
    kept_before = kept;
  }
}

TEST(Softmax, LossIsFiniteWhereTheProbabilityVanishes) {
  const Problem p = problem(Layer::softmax_cross_entropy, 1, 2, 1);
  std::vector<float> x = {1000, -1000};
  const std::uint8_t label = 1;
  double y[2], dx[2], loss = 0;
  const Operands operands{.x = x.data(), .labels = &label};
  reference(p, operands, {.y = y, .dx = dx, .loss = &loss});
  EXPECT_EQ(loss, 2000);
  EXPECT_EQ(y[0], 1);
}

}  // namespace
}  // namespace stepladder::layers
