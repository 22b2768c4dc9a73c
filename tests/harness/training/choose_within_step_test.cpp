// The rungs of a step are those that are fastest within it.
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <thread>

#include "harness/adapters/primitives.hpp"
#include "harness/execution/measured_step.hpp"
#include "tests/harness/training/training_networks.hpp"

namespace stepladder {
namespace {

TEST(ChooseWithinStep, KeepsTheFastestAlternativeOfEachOperation) {
  PlanStore plans(1);
  TrainableNetwork network(small_network(4), UseSpec("best"), {.alternatives = true}, plans);
  fill_batch(network, 1);
  std::set<std::string> with_alternatives;
  for (const Operation& operation : network.operations())
    if (!operation.alternatives.empty()) {
      EXPECT_EQ(operation.alternatives.front().variant, operation.variant);
      EXPECT_GT(operation.alternatives.size(), 1U);
      with_alternatives.insert(operation.layer);
    }
  EXPECT_FALSE(with_alternatives.empty());

  Operation& first = network.operations().front();
  int runs = 0;
  const auto slow = [run = first.run] {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    run();
  };
  first.alternatives = {{"slow", slow},
                        {"fast", [run = first.run, &runs] { ++runs, run(); }},
                        {"slower", [slow] { slow(), slow(); }}};
  choose_within_step(network);
  EXPECT_EQ(first.variant, "fast");
  for (const Operation& operation : network.operations())
    EXPECT_TRUE(operation.alternatives.empty()) << operation.layer;
  const int before = runs;
  network.step(0.0);
  EXPECT_EQ(runs, before + 1);
}

// The second operation's rung "divided" is the fastest where the first one's is "fast", and the
// slowest where it is "slow", which comes before it in the list as "divided" does in its own.
TEST(ChooseWithinStep, JudgesARungBesideTheChosenOnesOfOthers) {
  PlanStore plans(1);
  TrainableNetwork network(small_network(4), UseSpec("best"), {}, plans);
  fill_batch(network, 1);
  Operation& first = network.operations()[0];
  Operation& second = network.operations()[1];
  const auto lasts = [](int milliseconds, const std::function<void()>& run) {
    return [milliseconds, run] {
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
      run();
    };
  };
  bool divided = false;
  const auto divides = [&divided](bool divide, const std::function<void()>& run) {
    return [&divided, divide, run] { divided = divide, run(); };
  };
  first.alternatives = {{"slow", divides(false, lasts(4, first.run))},
                        {"fast", divides(true, first.run)}};
  second.alternatives = {{"divided", [&divided, near = second.run,
                                      far = lasts(12, second.run)] { divided ? near() : far(); }},
                         {"alone", lasts(4, second.run)}};
  choose_within_step(network);
  EXPECT_EQ(first.variant, "fast");
  EXPECT_EQ(second.variant, "divided");
}

TEST(ChooseWithinStep, LeavesAStepWithoutAlternativesAsItIs) {
  PlanStore plans(1);
  TrainableNetwork network(small_network(4), UseSpec("best"), {}, plans);
  fill_batch(network, 1);
  const std::int64_t step = network.next_step();
  choose_within_step(network);
  EXPECT_EQ(network.next_step(), step);
}

}  // namespace
}  // namespace stepladder
