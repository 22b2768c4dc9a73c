// Training: learning rate and weights decay, evaluation has no dropout, networks learn.
#include "harness/training/trainer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/data/generated.hpp"
#include "harness/data/normalization.hpp"
#include "tests/error_messages.hpp"
#include "tests/harness/training/training_networks.hpp"

namespace stepladder {
namespace {

using network::OptimizerDescription;

TEST(LearningRate, DecaysByItsFactorEverySoManySamples) {
  OptimizerDescription optimizer;
  optimizer.learning_rate = 0.5;
  EXPECT_EQ(learning_rate_after(optimizer, 1000000), 0.5);
  optimizer.decay = 0.9;
  optimizer.decay_every_samples = 1000;
  for (const std::int64_t samples : {0, 1, 999, 1000, 1999, 2000, 54321})
    EXPECT_DOUBLE_EQ(learning_rate_after(optimizer, samples),
                     0.5 * std::pow(0.9, std::floor(static_cast<double>(samples) / 1000)));
}

TEST(WeightDecay, AppliesToTheWeightsOfItsLayersAndNoBiases) {
  using Which = OptimizerDescription::DecayedWeights;
  const std::set<std::string> convolution = {"conv.weights"},
                              connected = {"hidden.weights", "output.weights"},
                              all = {"conv.weights", "hidden.weights", "output.weights"};
  for (const auto& [which, decayed] : {std::pair{Which::all, all},
                                       {Which::convolution, convolution},
                                       {Which::fully_connected, connected}}) {
    network::NetworkDescription description = small_network(4);
    description.optimizer.weight_decay = 0.25;
    description.optimizer.weight_decay_on = which;
    PlanStore plans(1);
    TrainableNetwork network(description, UseSpec("serial"), {}, plans);
    fill_batch(network, 3);
    for (float& p : network.parameters()) p += 0.1F;  // biases too, which are initially 0
    const std::vector<float> before(network.parameters().begin(), network.parameters().end());
    network.step(0.5);
    for (const ParameterRange& p : network.parameter_list())
      for (std::size_t i = p.offset; i < p.offset + p.count; ++i) {
        const float decay = decayed.contains(p.name) ? 0.25F * before[i] : 0.0F;
        EXPECT_NEAR(network.parameters()[i], before[i] - 0.5F * (network.gradients()[i] + decay),
                    1e-6)
            << p.name;
      }
  }
}

TEST(Evaluation, DropsNothing) {
  PlanStore plans(1);
  TrainableNetwork with(small_network(8), UseSpec("serial"), {}, plans);
  TrainableNetwork without(network::without_optional(small_network(8)), UseSpec("serial"), {},
                           plans);
  ASSERT_EQ(with.parameters().size(), without.parameters().size());
  std::ranges::copy(with.parameters(), without.parameters().begin());
  fill_batch(with, 2);
  fill_batch(without, 2);
  with.evaluate();
  without.evaluate();
  EXPECT_TRUE(std::ranges::equal(with.probabilities(), without.probabilities()));
  EXPECT_NE(with.forward(), without.forward()) << "in training most activations are dropped";
}

TEST(Accuracy, CountsEveryImageOnceWithAnyBatch) {
  const data::Dataset images = bright_rows(53, 4);
  PlanStore plans(1);
  std::set<double> accuracies;
  for (const std::int64_t batch : {1, 7, 20, 53}) {
    TrainableNetwork network(small_network(batch), UseSpec("serial"), {.seed = 6}, plans);
    accuracies.insert(accuracy_on(network, images));
  }
  EXPECT_EQ(accuracies.size(), 1U);
  const double images_right = 53 * *accuracies.begin();
  EXPECT_NEAR(images_right, std::round(images_right), 1e-9);
}

TEST(Training, LearnsAndReportsItsProgress) {
  const data::Dataset images = bright_rows(200, 1);
  PlanStore plans(1);
  TrainableNetwork network(network::without_optional(small_network(10)), UseSpec("best"), {},
                           plans);
  Trainer trainer(network, images, 1, 0);
  EXPECT_EQ(trainer.steps_per_epoch(), 20);
  for (int step = 1; step <= 100; ++step) {
    trainer.step();
    EXPECT_EQ(trainer.steps(), step);
    EXPECT_EQ(trainer.epoch(), (step - 1) / 20);
    EXPECT_EQ(trainer.learning_rate(), 0.1);
  }
  EXPECT_GT(trainer.seconds(), 0);
  EXPECT_GT(accuracy_on(network, bright_rows(300, 2)), 0.95);
}

TEST(Training, RepeatsItselfFromItsSeed) {
  const data::Dataset images = bright_rows(100, 1);
  PlanStore plans(1);
  const auto losses = [&](std::uint64_t seed) {
    TrainableNetwork network(small_network(10), UseSpec("serial"), {.seed = seed}, plans);
    Trainer trainer(network, images, seed, 1);
    std::vector<double> all;
    for (int step = 0; step < 15; ++step) {
      trainer.step();
      all.push_back(trainer.loss());
    }
    return all;
  };
  EXPECT_EQ(losses(1), losses(1));
  EXPECT_NE(losses(1), losses(2));
}

TEST(Training, ALossThatIsNoLongerFiniteEndsIt) {
  const data::Dataset images = bright_rows(100, 1);
  network::NetworkDescription description = small_network(10);
  description.optimizer.learning_rate = 1e30;
  PlanStore plans(1);
  TrainableNetwork network(description, UseSpec("serial"), {}, plans);
  Trainer trainer(network, images, 1, 0);
  const std::string error = error_of([&] {
    for (int step = 0; step < 50; ++step) trainer.step();
  });
  EXPECT_TRUE(says(error, {"small", "after step " + std::to_string(trainer.steps()),
                           "learning rate 1e+30 is too high"}));
}

TEST(Training, ALossThatIsNotFiniteBeforeAnyUpdateIsNotTheLearningRatesFault) {
  const data::Dataset images = bright_rows(100, 1);
  network::NetworkDescription description = small_network(10);
  description.normal_std = 1e30;
  PlanStore plans(1);
  TrainableNetwork network(description, UseSpec("serial"), {}, plans);
  Trainer trainer(network, images, 1, 0);
  const std::string error = error_of([&] { trainer.step(); });
  EXPECT_TRUE(says(error, {"small", "first step, before any update", "normal_std 1e+30"}));
  EXPECT_EQ(error.find("learning rate"), std::string::npos) << error;
}

TEST(Training, TheMultilayerPerceptronLearnsGeneratedImages) {
  data::DatasetPair images = data::generate({}, 2000, 500, 1);
  data::normalize(images);
  PlanStore plans(1);
  TrainableNetwork network(builtin_network("mlp", 50), UseSpec("best"), {}, plans);
  EXPECT_NEAR(accuracy_on(network, images.test), 0.1, 0.08) << "before training";
  Trainer trainer(network, images.train, 1, 0);
  for (int step = 0; step < 5 * trainer.steps_per_epoch(); ++step) trainer.step();
  EXPECT_GT(accuracy_on(network, images.test), 0.85);
}

}  // namespace
}  // namespace stepladder
