// The gradients of whole networks are compared with central differences of the loss of a reference
// network in double precision.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/harness/training/reference_network.hpp"
#include "tests/harness/training/training_networks.hpp"

namespace stepladder {
namespace {

constexpr std::uint64_t gradient_seed = 5;

// The loss has an error of 1e-15 and a small curvature: both errors of the quotient are below 1e-9,
// and below 1e-6 along all elements of a tensor together.
constexpr double h = 1e-6;

// The error that single precision may cause, as a fraction of a tensor's largest derivative.
constexpr double tolerance = 2e-4;

// The batch has no activation as near to a kink as this: rounding in single precision, which
// differs between rungs, does not move one across.
constexpr double least_margin = 3e-6;

class Derivatives {
 public:
  explicit Derivatives(TrainableNetwork& network)
      : reference_(network, gradient_seed),
        parameters_(network.parameters().begin(), network.parameters().end()) {}

  double kink_margin() const { return reference_.kink_margin(parameters_, 1); }

  double loss() const { return reference_.loss(parameters_, 1); }

  // The derivative of the loss along `direction`, whose elements begin at `offset` in the
  // parameters. The length of the step does not grow with the number of elements: fewer activations
  // cross the kinks of relu and max_pool.
  double along(std::size_t offset, const Doubles& direction) const {
    Doubles above = parameters_, below = parameters_;
    const double step = h / std::sqrt(static_cast<double>(direction.size()));
    for (std::size_t i = 0; i < direction.size(); ++i) {
      above[offset + i] += step * direction[i];
      below[offset + i] -= step * direction[i];
    }
    return (reference_.loss(above, 1) - reference_.loss(below, 1)) / (2 * step);
  }

 private:
  ReferenceNetwork reference_;
  Doubles parameters_;
};

void expect_gradients(const network::NetworkDescription& description, const std::string& use,
                      const NetworkOptions& options, int elements) {
  SCOPED_TRACE(fmt::format("{} use={} threads={} inter={}", description.name, use, options.threads,
                           options.inter));
  PlanStore plans(gradient_seed);
  TrainableNetwork network(description, UseSpec(use), options, plans);
  Random random(gradient_seed, description.name);
  for (const ParameterRange& p : network.parameter_list())
    if (p.name.ends_with(".biases"))  // initially 0, where relu has no derivative
      for (float& bias : network.parameters().subspan(p.offset, p.count))
        bias = random.uniform(-0.1F, 0.1F);
  constexpr std::uint64_t batches = 100;
  std::uint64_t batch = 0;
  do {
    ASSERT_LT(batch, batches) << "every batch has an activation at a kink";
    fill_batch(network, gradient_seed + batch++);
  } while (Derivatives(network).kink_margin() < least_margin);
  const double loss = network.forward();
  network.backward();

  const Derivatives derivatives(network);
  EXPECT_NEAR(loss, derivatives.loss(), 1e-5 * std::max(1.0, loss));
  for (const ParameterRange& p : network.parameter_list()) {
    const auto gradient = network.gradients().subspan(p.offset, p.count);
    double largest = 0;
    for (const float g : gradient) largest = std::max(largest, std::abs(double{g}));
    for (int draw = 0; draw < elements; ++draw) {
      const auto i =
          static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(p.count) - 1));
      EXPECT_NEAR(gradient[i], derivatives.along(p.offset + i, {1.0}), tolerance * largest)
          << p.name << "[" << i << "]";
    }
    // All elements together, with random signs.
    Doubles signs(p.count);
    for (double& sign : signs) sign = random.coin() ? 1.0 : -1.0;
    double expected = 0;
    for (std::size_t i = 0; i < p.count; ++i) expected += signs[i] * gradient[i];
    EXPECT_NEAR(expected, derivatives.along(p.offset, signs),
                tolerance * largest * std::sqrt(static_cast<double>(p.count)))
        << p.name << ", all elements";
  }
}

TEST(NetworkGradient, OfTheMultilayerPerceptron) {
  expect_gradients(builtin_network("mlp", 5), "best", {2, 1, gradient_seed}, 8);
  expect_gradients(builtin_network("mlp", 5), "vendor", {1, 1, gradient_seed}, 2);
}

TEST(NetworkGradient, OfTheMnistCnn) {
  expect_gradients(builtin_network("mnist_cnn", 2), "best", {2, 1, gradient_seed}, 3);
  expect_gradients(network::without_optional(builtin_network("mnist_cnn", 2)), "simd",
                   {1, 1, gradient_seed}, 1);
}

TEST(NetworkGradient, OfTheCifarCnn) {
  expect_gradients(builtin_network("cifar_cnn", 2), "best", {2, 1, gradient_seed}, 3);
  expect_gradients(network::without_optional(builtin_network("cifar_cnn", 2)), "openmp",
                   {2, 2, gradient_seed}, 1);
}

TEST(NetworkGradient, OfRandomNetworks) {
  const char* uses[] = {"serial", "simd", "openmp", "pthread", "packed_openmp", "best", "vendor"};
  for (std::uint64_t i = 0; i < 60; ++i)
    expect_gradients(random_network(i), uses[i % std::size(uses)],
                     {1 + static_cast<int>(i % 3), 1 + static_cast<int>(i / 3 % 2), gradient_seed},
                     4);
}

}  // namespace
}  // namespace stepladder
