// Modes of training: their names and options, the schedule of the learning rate, and those whose
// replicas are threads of one process. tests/mpi has those over ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/io/nearest.hpp"
#include "harness/training/mode.hpp"
#include "harness/training/modes/replica.hpp"
#include "harness/training/modes/segments.hpp"
#include "harness/training/trainer.hpp"
#include "tests/error_messages.hpp"
#include "tests/harness/training/training_networks.hpp"

namespace stepladder {
namespace {

TEST(Modes, EachHasANameAnIdeaAndOptionsThatAreExplained) {
  std::set<std::string> names;
  for (const ModeEntry& entry : modes()) {
    EXPECT_TRUE(names.insert(entry.info.name).second) << entry.info.name;
    EXPECT_GT(std::string(entry.info.idea).size(), 20U) << entry.info.name;
    for (const ModeOption& option : entry.info.options)
      EXPECT_FALSE(std::string(option.meaning).empty()) << entry.info.name;
    EXPECT_EQ(&mode_named(entry.info.name), &entry);
  }
  for (const char* name : {"single", "hogwild", "threads_over_samples", "actors_learner", "hybrid"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(Modes, SpecsAreReadWithTheirOptions) {
  const ModeSpec plain("ssp");
  EXPECT_EQ(plain.name(), "ssp");
  EXPECT_EQ(plain.integer("bound"), 2);
  const ModeSpec both("local_sgd,block_momentum=0.5,every=4");
  EXPECT_EQ(both.integer("every", 1), 4);
  EXPECT_EQ(both.number("block_momentum"), 0.5);
  EXPECT_TRUE(ModeSpec("synchronous,overlap=yes").flag("overlap"));
  const ModeSpec hybrid("token_ring/model_parallel,node=4");
  EXPECT_EQ(hybrid.name(), "hybrid");
  EXPECT_EQ(hybrid.value("between"), "token_ring");
  EXPECT_EQ(hybrid.value("inside"), "model_parallel");
  EXPECT_EQ(hybrid.integer("node"), 4);
  EXPECT_EQ(ModeSpec("ssp,bound=010").integer("bound"), 10);
}

TEST(Modes, BadSpecsAreOneSentence) {
  EXPECT_THROW(ModeSpec("synchronus"), UnknownName);
  EXPECT_THROW(ModeSpec("ssp,bond=3"), UnknownName);
  EXPECT_THROW(ModeSpec("token_ring/nothing"), UnknownName);
  EXPECT_THROW(ModeSpec(""), UnknownName);
  EXPECT_TRUE(says(error_of([] { ModeSpec("ssp,bound"); }), {"\"bound\"", "option=value"}));
  for (const char* bad : {"-1", "two", "", "3x", "0x1", "9223372036854775807"})
    EXPECT_TRUE(says(error_of([&] { ModeSpec(std::string("ssp,bound=") + bad).integer("bound"); }),
                     {"bound=", "whole number from 0 to 1000000000"}))
        << bad;
  EXPECT_TRUE(
      says(error_of([] { ModeSpec("local_sgd,block_momentum=nan").number("block_momentum"); }),
           {"expected a number"}));
  EXPECT_TRUE(
      says(error_of([] { ModeSpec("local_sgd,block_momentum=1e39").number("block_momentum"); }),
           {"block_momentum=1e39: expected a number from 0 to 3.4e+38"}));
  EXPECT_TRUE(says(error_of([] { ModeSpec("ssp,bo\nund"); }), {"mode ssp,bo\\nund: \"bo\\nund\""}));
  EXPECT_TRUE(
      says(error_of([] { ModeSpec("synchronous,overlap=true").flag("overlap"); }), {"yes or no"}));
}

TEST(LearningRate, GrowsDuringTheWarmUpToItsScaledValue) {
  TrainingSetup setup{
      .description = small_network(4), .use = UseSpec("serial"), .plans = nullptr, .data = nullptr};
  setup.description.optimizer.learning_rate = 0.1;
  EXPECT_DOUBLE_EQ(learning_rate_of(setup, 50), 0.1);
  setup.scale = 4;
  EXPECT_DOUBLE_EQ(learning_rate_of(setup, 0), 0.4);
  setup.warm_up = 100;
  EXPECT_DOUBLE_EQ(learning_rate_of(setup, 0), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate_of(setup, 50), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate_of(setup, 100), 0.4);
  EXPECT_DOUBLE_EQ(learning_rate_of(setup, 1000), 0.4);
}

TEST(Segments, BeginAtLayersWithWeights) {
  const network::NetworkDescription cnn =
      network::pool_before_relu(builtin_network("mnist_cnn", 2));
  const auto firsts = [&](bool by_channel) {
    std::vector<std::string> names;
    std::size_t end = 0;
    for (const Segment& segment : segments_of(cnn, by_channel)) {
      EXPECT_EQ(segment.first, end);
      end = segment.end;
      names.push_back(cnn.layers[segment.first].name);
    }
    EXPECT_EQ(end, cnn.layers.size());
    return names;
  };
  EXPECT_EQ(firsts(false), (std::vector<std::string>{"conv1", "conv2", "fc1", "fc2"}));
  EXPECT_EQ(firsts(true),
            (std::vector<std::string>{"conv1", "lrn1", "conv2", "lrn2", "fc1", "fc2", "softmax1"}));
}

// The batch is the whole data set: only its order changes from one batch to the next.
TEST(Replicas, DrawAnotherDropoutMaskInEveryStepAndPart) {
  const data::Dataset images = bright_rows(8, 1);
  PlanStore plans(1);
  const auto losses = [&](network::NetworkDescription description, int part, int parts) {
    description.batch = 8;
    const TrainingSetup setup{
        .description = description, .use = UseSpec("serial"), .plans = &plans, .data = &images};
    Replica replica(setup, setup.use, part, parts, {.exchange = Exchange::none});
    std::vector<double> all;
    for (int number = 0; number < 3; ++number) {
      replica.draw(number);
      all.push_back(replica.gradient());
    }
    return all;
  };
  const std::vector<double> without = losses(network::without_optional(small_network(8)), 0, 1),
                            with = losses(small_network(8), 0, 1);
  EXPECT_NEAR(without[0], without[1], 1e-5);
  EXPECT_GT(std::abs(with[0] - with[1]), 1e-3);
  EXPECT_GT(std::abs(with[1] - with[2]), 1e-3);
  EXPECT_EQ(with, losses(small_network(8), 0, 1)) << "they follow from the seed";
}

struct Trained {
  std::vector<float> weights;
  Progress progress;
};

class TrainingModes : public testing::Test {
 protected:
  Trained train(const std::string& text, std::int64_t batch, int replicas, std::int64_t steps,
                sgd_update::Optimizer optimizer = sgd_update::Optimizer::adam) {
    TrainingSetup setup{.description = network::without_optional(small_network(batch)),
                        .use = UseSpec("serial"),
                        .plans = &plans_,
                        .data = &images_,
                        .replicas = replicas,
                        .shift = 1,
                        .seed = 3};
    setup.description.optimizer.type = optimizer;
    setup.description.optimizer.learning_rate =
        optimizer == sgd_update::Optimizer::adam ? 0.01 : 0.05;
    const ModeSpec spec(text);
    const std::unique_ptr<Mode> mode = mode_named(spec.name()).make(setup, spec);
    std::int64_t calls = 0;
    mode->on_step([&](const Progress& progress) { EXPECT_EQ(progress.step, ++calls); });
    mode->train(steps / 2);
    mode->train(steps);
    EXPECT_EQ(calls, steps);
    accuracy_ = accuracy_on(mode->network(), bright_rows(300, 2));
    const auto weights = mode->network().parameters();
    return {{weights.begin(), weights.end()}, mode->total()};
  }

  PlanStore plans_{1};
  data::Dataset images_ = bright_rows(200, 1);
  double accuracy_ = 0;
};

TEST_F(TrainingModes, ThreadsOverSamplesMakeTheWeightsOfOneProcess) {
  for (const auto& [batch, threads] : {std::pair{8, 2}, {7, 3}, {2, 4}, {5, 1}}) {
    const Trained alone = train("single", batch, 1, 10),
                  together = train("threads_over_samples", batch, threads, 10);
    for (std::size_t i = 0; i < alone.weights.size(); ++i)
      ASSERT_NEAR(alone.weights[i], together.weights[i], 5e-5)
          << batch << " samples on " << threads;
    EXPECT_EQ(together.progress.samples, 10 * batch);
    EXPECT_TRUE(together.progress.staleness.empty());
  }
}

TEST_F(TrainingModes, AnActorsLearnerMakesTheBitsOfOneProcess) {
  const Trained alone = train("single", 8, 1, 30);
  for (const int actors : {1, 2, 5}) {
    EXPECT_EQ(train("actors_learner", 8, actors, 30).weights, alone.weights) << actors;
    EXPECT_EQ(train("actors_learner,queue=1", 8, actors, 30).weights, alone.weights) << actors;
  }
}

TEST_F(TrainingModes, ALossThatIsNotFiniteBeforeAnyUpdateIsNotTheLearningRatesFault) {
  TrainingSetup setup{.description = small_network(8),
                      .use = UseSpec("serial"),
                      .plans = &plans_,
                      .data = &images_,
                      .replicas = 2};
  setup.description.normal_std = 1e30;
  for (const char* name : {"single", "threads_over_samples", "actors_learner"}) {
    const std::unique_ptr<Mode> mode = mode_named(name).make(setup, ModeSpec(name));
    EXPECT_TRUE(says(error_of([&] { mode->train(3); }), {"first step", "normal_std 1e+30"}))
        << name;
  }
}

// A server knows the bytes of its answers only when it has sent them.
class Answering final : public Mode {
 public:
  Answering(const TrainingSetup& setup, bool sends) : Mode(setup, "answering"), sends_(sends) {}
  TrainableNetwork& network() override { throw std::logic_error("it has no network"); }

 private:
  void train_to(std::int64_t) override {
    double bytes = 0;
    const auto answer = [&] {
      bytes = sends_ ? 8 : 0;
      training_sleep(0.001);
    };
    blocked(answer, bytes);
  }
  bool sends_;
};

TEST_F(TrainingModes, TimeOfMessagesWhoseBytesAreKnownAfterwardsIsCommunication) {
  const TrainingSetup setup{.description = small_network(8),
                            .use = UseSpec("serial"),
                            .plans = &plans_,
                            .data = &images_};
  Answering sends(setup, true), waits(setup, false);
  sends.train(1);
  waits.train(1);
  EXPECT_GT(sends.progress().exposed, 0);
  EXPECT_EQ(sends.progress().waiting, 0);
  EXPECT_EQ(waits.progress().exposed, 0);
  EXPECT_GT(waits.progress().waiting, 0);
}

TEST_F(TrainingModes, HogwildWithOneThreadIsOneProcessAndWithSeveralLearns) {
  EXPECT_EQ(train("hogwild", 8, 1, 20).weights, train("single", 8, 1, 20).weights);
  constexpr std::int64_t steps = 1500;
  const Trained several = train("hogwild", 8, 4, steps, sgd_update::Optimizer::sgd);
  EXPECT_GT(accuracy_, 0.8) << "a third is chance; the result differs from run to run";
  std::int64_t updates = 0;
  for (const std::int64_t count : several.progress.staleness) updates += count;
  EXPECT_EQ(updates, steps);
}

}  // namespace
}  // namespace stepladder
