// Training steps have the same losses with every choice of rungs, threads and operations at once:
// ten steps of those that all ladders have, three of single rungs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "harness/adapters/primitives.hpp"
#include "tests/harness/training/training_networks.hpp"

namespace stepladder {
namespace {

constexpr std::uint64_t trace_seed = 11;
constexpr int steps = 10, steps_of_single_rungs = 3;

// Sums in another order differ by about 1e-7, relative. In ten steps the difference grows, but
// stays below this fraction of the loss, or of 1 if the loss is smaller. With rungs that round
// their operands it stays below the error of one product, at a rate with which the loss of a few
// images does not oscillate.
constexpr double tolerance_of_fp32 = 1e-4;
constexpr double tolerance_of_bf16 = 0x1p-7 + 0x1p-16, rate_of_rounded = 0.1;

void restart(TrainableNetwork& network, std::span<const float> weights) {
  std::ranges::copy(weights, network.parameters().begin());
  for (const std::span<float> state : {network.state1(), network.state2()})
    std::ranges::fill(state, 0.0F);
  network.set_next_step(1);
}

std::vector<double> trace(TrainableNetwork& network, int steps, double rate = 1) {
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    fill_batch(network, trace_seed);
    losses.push_back(network.step(rate * network.description().optimizer.learning_rate));
  }
  return losses;
}

struct Configuration {
  std::string use;
  NetworkOptions options;
  int steps;
};

bool is_lowest(const Variant& variant) {
  return variant.info->technique == Technique::serial &&
         std::string_view(variant.info->builds_on).empty();
}

// The rungs that all ladders have, with one or two threads and operations at once; and `best` with
// each rung of each ladder that this machine can run, but the lowest, which the serial network has.
std::vector<Configuration> configurations() {
  std::vector<Configuration> all;
  for (const char* use : {"simd", "openmp", "pthread", "best", "vendor"})
    for (const int threads : {1, 2})
      for (const int inter : {1, 2}) all.push_back({use, {threads, inter, trace_seed}, steps});
  for (const PrimitiveType* type : primitives())
    for (const Variant& variant : type->variants())
      if (variant.why_unavailable.empty() && !type->needs_ranks() && !is_lowest(variant))
        all.push_back({fmt::format("best,{}={}", type->name(), variant.name),
                       {2, 1, trace_seed},
                       steps_of_single_rungs});
  return all;
}

void expect_one_trace(const network::NetworkDescription& description) {
  PlanStore plans(trace_seed);
  TrainableNetwork serial(description, UseSpec("serial"), {.seed = trace_seed}, plans);
  const std::vector<float> initial(serial.parameters().begin(), serial.parameters().end());
  const std::vector<double> expected = trace(serial, steps);
  EXPECT_LT(expected.back(), expected.front()) << "the network does not learn";
  restart(serial, initial);
  const std::vector<double> expected_of_rounded = trace(serial, steps, rate_of_rounded);
  for (auto [use, options, count] : configurations()) {
    options.parameters_of =
        &serial.parts();  // drawing millions of weights takes longer than ten steps
    SCOPED_TRACE(fmt::format("{} use={} threads={} inter={}", description.name, use,
                             options.threads, options.inter));
    std::unique_ptr<TrainableNetwork> network;
    try {
      network = std::make_unique<TrainableNetwork>(description, UseSpec(use), options, plans);
    } catch (const NoVariant& none) {  // its library is missing, or it does not support the layers
      std::cout << use << ": " << none.what() << '\n';
      continue;
    }
    restart(*network, initial);
    const bool rounds = network->operand_error() > 0;
    const std::vector<double> losses = trace(*network, count, rounds ? rate_of_rounded : 1);
    const double tolerance = rounds ? tolerance_of_bf16 : tolerance_of_fp32;
    for (std::size_t i = 0; i < losses.size(); ++i) {
      const double loss = (rounds ? expected_of_rounded : expected)[i];
      EXPECT_NEAR(losses[i], loss, tolerance * std::max(1.0, loss)) << "step " << i;
    }
  }
}

TEST(LossTrace, OfTheMultilayerPerceptron) { expect_one_trace(builtin_network("mlp", 16)); }
TEST(LossTrace, OfTheMnistCnn) { expect_one_trace(builtin_network("mnist_cnn", 2)); }
// With its learning rate of 0.1, and still with 0.02, the loss of so few images oscillates, and a
// rounding error that changes the sign of an activation grows to 1.5e-4 in ten steps. With 0.005
// the largest difference is 7e-7.
TEST(LossTrace, OfTheCifarCnn) {
  network::NetworkDescription description = builtin_network("cifar_cnn", 4);
  description.optimizer.learning_rate = 0.005;
  expect_one_trace(description);
}

}  // namespace
}  // namespace stepladder
