// Predictions of training modes: formulas on links of alpha + n beta and layers of known times, and
// the layers of a network that is divided.
#include "harness/planner/planner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "harness/adapters/primitives.hpp"
#include "harness/planner/layer_times.hpp"
#include "harness/problem/random.hpp"
#include "harness/training/modes/segments.hpp"
#include "tests/harness/training/training_networks.hpp"

namespace stepladder {
namespace {

constexpr double alpha = 1e-5, beta = 1e-9, gamma = 2e-10;
constexpr double update = 3e-3;  // of all weights

Links uniform_links(int hosts) {
  const CostCurve line = CostCurve::line(alpha, beta), none = CostCurve::line(0, 0);
  Links links{.within = {line, line, line},
              .between = {},
              .add = CostCurve::line(0, gamma),
              .copy = none,
              .stream = CostCurve::line(0, beta),
              .handoff = CostCurve::line(1e-7, beta),
              .code = 0};
  if (hosts > 1) links.between = links.within;
  return links;
}

// A replica computes a sample in 1 ms of every layer, a third of it forward. All replicas are
// equally fast.
class FixedTimes final : public LayerTimes {
 public:
  explicit FixedTimes(const network::NetworkDescription& network)
      : network_(network::pool_before_relu(network)) {}

  const StepTimes& whole(std::int64_t samples, int active) override {
    StepTimes& times = whole_[samples];
    if (times.layers.empty()) times = of(samples, 1);
    last_active = active;
    return times;
  }
  const StepTimes& split(std::int64_t samples, int ranks, int) override {
    return split_[samples] = of(samples, ranks);
  }
  double gradient(std::int64_t samples) const {
    return static_cast<double>(samples) * 1e-3 * static_cast<double>(network_.layers.size());
  }

  int last_active = 0;

 private:
  StepTimes of(std::int64_t samples, double ranks) const {
    StepTimes times;
    for (const network::LayerDescription& layer : network_.layers) {
      const double seconds = 1e-3 * static_cast<double>(samples) / ranks;
      times.layers.push_back(
          {layer.name, seconds / 3, 2 * seconds / 3, layer.weights() + layer.biases()});
      times.forward += seconds / 3;
      times.backward += 2 * seconds / 3;
    }
    times.update = times.update_alone = update / ranks;
    times.slowest_gradient = times.forward + times.backward;
    times.slowest_step = times.free_step = times.slowest_gradient + times.update;
    times.updated = {4 * static_cast<double>(network::parameter_count(network_))};
    return times;
  }

  network::NetworkDescription network_;
  std::map<std::int64_t, StepTimes> whole_, split_;
};

struct Plan {
  network::NetworkDescription network = small_network(48);
  Cluster cluster{.ranks = 4, .hosts = 1, .cores = 64, .threads = 1};
  std::string use = "best,all_reduce=ring";
  FixedTimes times{network};

  double n() const { return 4 * static_cast<double>(network::parameter_count(network)); }
  double message() const { return alpha + n() * beta; }
  Prediction operator()(const std::string& mode) {
    return predict(network, UseSpec(use), cluster, uniform_links(cluster.hosts), times,
                   ModeSpec(mode));
  }
};

bool has_mpi() {
  for (const detail::Entry& entry : detail::entries("all_reduce"))
    if (entry.cost != nullptr) return true;
  return false;
}
#define NEEDS_MPI \
  if (!has_mpi()) GTEST_SKIP() << "built without MPI: the rungs have no cost functions"

TEST(Planner, SynchronousIsThePartOfTheBatchTheRingAndTheUpdate) {
  NEEDS_MPI;
  Plan plan;
  for (const int ranks : {2, 3, 4, 8}) {
    plan.cluster.ranks = ranks;
    const Prediction now = plan("synchronous");
    const double p = ranks, chunk = plan.n() / p;
    EXPECT_EQ(now.why_not, "");
    EXPECT_EQ(now.all_reduce, "ring");
    EXPECT_TRUE(now.synchronous);
    EXPECT_NEAR(now.compute, plan.times.gradient(48) / p + update, 1e-9);
    EXPECT_NEAR(now.exposed, (p - 1) * (2 * (alpha + chunk * beta) + chunk * gamma), 1e-9);
    EXPECT_NEAR(now.bytes, 2 * (p - 1) / p * plan.n(), 1e-6);
  }
}

TEST(Planner, RanksWithSmallerPartsWaitForTheLargestPart) {
  NEEDS_MPI;
  Plan plan;
  plan.cluster.ranks = 5;  // parts of 10, 10, 10, 9, 9
  const Prediction now = plan("synchronous");
  EXPECT_NEAR(now.compute + now.waiting, plan.times.gradient(10) + update, 1e-9);
  EXPECT_NEAR(now.waiting, plan.times.gradient(10) * 0.04, 1e-9);
}

TEST(Planner, TheFastestRungIsTakenAndSharedMemoryNeedsOneHost) {
  NEEDS_MPI;
  Plan plan;
  plan.use = "best";
  for (const int hosts : {1, 2}) {
    plan.cluster.hosts = hosts;
    const Prediction best = predict(plan.network, UseSpec("best"), plan.cluster,
                                    uniform_links(hosts), plan.times, ModeSpec("synchronous"));
    int rungs = 0;
    for (const Variant& variant : UseSpec("best").candidates(all_reduce_type())) {
      if (variant.entry.cost == nullptr) continue;
      plan.use = "best,all_reduce=" + variant.name;
      const Prediction one = plan("synchronous");
      const bool in_memory = std::string(variant.info->name).starts_with("shared_window");
      EXPECT_EQ(one.why_not.empty(), hosts == 1 || !in_memory) << variant.name;
      if (one.why_not.empty()) {
        EXPECT_LE(best.exposed, one.exposed) << variant.name;
      }
      ++rungs;
    }
    EXPECT_GT(rungs, 3);
  }
}

TEST(Planner, OverlapHidesAtMostTheBackwardPassAfterTheFirstBucket) {
  NEEDS_MPI;
  Plan plan;
  const double plain = plan("synchronous").seconds();
  const Prediction overlap = plan("synchronous,overlap=yes,bucket_kib=1");
  EXPECT_LT(overlap.seconds(), plain);
  EXPECT_GE(overlap.seconds(), plan("synchronous").compute);
  EXPECT_GT(overlap.exposed, 0) << "the last bucket is ready when backward() ends";
  // Without an idle core the all-reduces take turns with the layers.
  plan.cluster.cores = 4;
  EXPECT_GE(plan("synchronous,overlap=yes,bucket_kib=1").seconds(), plain);
}

TEST(Planner, LocalSgdCommunicatesOnceInSoManySteps) {
  NEEDS_MPI;
  Plan plan;
  const Prediction all = plan("synchronous"), some = plan("local_sgd,every=8");
  EXPECT_NEAR(8 * some.exposed, all.exposed, 1e-12);
  EXPECT_NEAR(8 * some.bytes, all.bytes, 1e-6);
  EXPECT_FALSE(some.synchronous);
}

TEST(Planner, CompressedRungsSendFewerBytes) {
  NEEDS_MPI;
  Plan plan;
  EXPECT_LT(plan("synchronous,compressed=one_bit").bytes, plan("synchronous").bytes / 4);
}

TEST(Planner, AShardedUpdateIsDividedAmongTheRanks) {
  NEEDS_MPI;
  Plan plan;
  const Prediction sharded = plan("sharded"), plain = plan("synchronous");
  EXPECT_NEAR(plain.compute - sharded.compute, update * 3 / 4, 1e-9);
  EXPECT_NEAR(sharded.exposed, plain.exposed, 1e-9) << "a ring's messages";
  EXPECT_NEAR(sharded.bytes, plain.bytes, 1e-6);
}

TEST(Planner, AMasterReceivesAndSendsOneMessageAfterAnother) {
  Plan plan;
  for (const int ranks : {2, 3, 4}) {
    plan.cluster.ranks = ranks;
    const Prediction now = plan("parameter_server");
    const double others = ranks - 1;
    EXPECT_NEAR(now.exposed, others * (2 * plan.message() + plan.n() * gamma), 1e-9);
    EXPECT_NEAR(now.seconds() - now.exposed, plan.times.gradient(48 / ranks) + update, 1e-9);
    EXPECT_NEAR(now.bytes, 2 * others / ranks * plan.n(), 1e-6);
  }
  plan.cluster.ranks = 4;
  EXPECT_LT(plan("parameter_server,first=2").seconds(), plan("parameter_server").seconds());
}

TEST(Planner, DownpourIsBoundByItsWorkersOrByItsServer) {
  Plan plan;
  const double message = plan.message(), gradient = plan.times.gradient(48);
  for (const int ranks : {2, 4, 64, 256}) {  // the last one is bound by its server
    plan.cluster.ranks = ranks;
    plan.cluster.cores = 2 * ranks;
    const double workers = ranks - 1, of_worker = (gradient + 2 * message + update) / workers,
                 of_server = 2 * message + update;
    EXPECT_NEAR(plan("downpour").seconds(), std::max(of_worker, of_server), 1e-9) << ranks;
    EXPECT_EQ(plan.times.last_active, ranks - 1) << "the server computes no gradient";
  }
  EXPECT_LT((gradient + 2 * message + update) / 255, 2 * message + update);
}

TEST(Planner, SspWithoutABoundWaitsForTheServer) {
  Plan plan;
  plan.cluster.ranks = 4;
  EXPECT_GT(plan("ssp,bound=0").seconds(), plan("ssp,bound=2").seconds());
  const double busy = 3 * (2 * plan.message() + plan.n() * gamma) + update;
  EXPECT_NEAR(plan("ssp,bound=0").seconds(), plan.times.gradient(16) + busy, 1e-9);
}

TEST(Planner, RanksOfATokenRingWaitForNobody) {
  Plan plan;
  const double step = plan.times.gradient(48) + update;
  const Prediction now = plan("token_ring");
  EXPECT_GE(now.seconds(), step / 4);
  EXPECT_LT(now.seconds(), (step + plan.message() + 2 * plan.n() * gamma) / 4 + 1e-9);
  EXPECT_EQ(now.exposed + now.waiting, 0);
}

TEST(Planner, ModesOfOneRankAreOneProcess) {
  Plan plan;
  plan.cluster.ranks = 1;
  const double step = plan.times.gradient(48) + update;
  for (const ModeEntry& entry : modes()) {
    if (std::string(entry.info.name) == "hybrid") continue;
    const Prediction now = plan(entry.info.name);
    EXPECT_EQ(now.why_not, "") << entry.info.name;
    EXPECT_NEAR(now.seconds(), step, 1e-3 * step) << entry.info.name;
    EXPECT_EQ(now.bytes, 0) << entry.info.name;
  }
}

TEST(Planner, EveryRegisteredModeHasAModel) {
  NEEDS_MPI;
  Plan plan;
  for (const ModeEntry& entry : modes()) {
    const Prediction now = plan(entry.info.name);
    EXPECT_EQ(now.why_not.empty(), std::string(entry.info.name) != "single") << now.why_not;
    if (now.why_not.empty()) {
      EXPECT_GT(now.seconds(), 0) << entry.info.name;
    }
  }
}

TEST(Planner, SaysWhyAModeCannotRun) {
  Plan plan;
  EXPECT_NE(plan("pipeline,micro_batches=5").why_not.find("48"), std::string::npos);
  EXPECT_NE(plan("token_ring/parameter_server,node=3").why_not.find("nodes of 3"),
            std::string::npos);
  EXPECT_NE(plan("single").why_not, "");
  EXPECT_NE(plan("parameter_server,first=9").why_not, "");
  plan.cluster.hosts = 2;
  for (const char* mode : {"hogwild", "threads_over_samples", "actors_learner"})
    EXPECT_NE(plan(mode).why_not, "") << mode;
}

TEST(Planner, HybridsOfOneNodeAreTheInnerModeAndNodesDivideTheTime) {
  Plan plan;
  EXPECT_NEAR(plan("parameter_server/parameter_server,node=4").seconds(),
              plan("parameter_server").seconds(), 1e-9);
  const double one = plan("token_ring/parameter_server,node=4").seconds(),
               two = plan("token_ring/parameter_server,node=2").seconds();
  EXPECT_LT(two, one + plan.message());
}

// --- the pipeline --------------------------------------------------------------------------------

double longest_of(const std::vector<double>& seconds, const std::vector<std::size_t>& firsts) {
  double longest = 0;
  for (std::size_t s = 0; s < firsts.size(); ++s) {
    const auto at = [&](std::size_t i) {
      return seconds.begin() +
             static_cast<std::ptrdiff_t>(i < firsts.size() ? firsts[i] : seconds.size());
    };
    longest = std::max(longest, std::accumulate(at(s), at(s + 1), 0.0));
  }
  return longest;
}

// Every division of [first, count) into stages, by recursion.
double shortest_longest(const std::vector<double>& seconds, std::vector<std::size_t> firsts,
                        std::size_t stages) {
  if (firsts.size() == stages) return longest_of(seconds, firsts);
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t next = firsts.back() + 1; next < seconds.size(); ++next) {
    firsts.push_back(next);
    best = std::min(best, shortest_longest(seconds, firsts, stages));
    firsts.pop_back();
  }
  return best;
}

TEST(BalancedStages, HaveTheShortestLongestOfAllDivisions) {
  Random random(1);
  for (std::size_t count = 1; count <= 9; ++count)
    for (std::size_t stages = 1; stages <= count; ++stages) {
      std::vector<double> seconds(count);
      for (double& each : seconds) each = static_cast<double>(random.integer(0, 9));
      const std::vector<std::size_t> firsts = balanced_stages(seconds, stages);
      ASSERT_EQ(firsts.size(), stages);
      EXPECT_EQ(firsts.front(), 0U);
      EXPECT_EQ(std::ranges::adjacent_find(firsts, std::ranges::greater_equal{}), firsts.end());
      EXPECT_EQ(longest_of(seconds, firsts), shortest_longest(seconds, {0}, stages))
          << count << " segments, " << stages << " stages";
    }
}

TEST(BalancedStages, AreFoundForManyLayers) {  // of 40 in 20 stages there are 7e10 divisions
  std::vector<double> seconds(40);
  for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] = i % 2 == 0 ? 1 : 3;
  EXPECT_EQ(longest_of(seconds, balanced_stages(seconds, 20)), 4);
}

TEST(PipelineSeconds, EqualStagesAreIdleAsTheFormulaSays) {
  for (const int stages : {1, 2, 3, 4})
    for (const int count : {1, 2, 4, 12})
      for (const bool is_1f1b : {false, true}) {
        const std::vector<StageTimes> all(static_cast<std::size_t>(stages), {1, 2, 0});
        EXPECT_NEAR(pipeline_seconds(all, count, is_1f1b), 3.0 * (count + stages - 1), 1e-9)
            << stages << " stages, " << count << " micro-batches, 1f1b " << is_1f1b;
      }
}

TEST(PipelineSeconds, TheLongestStageSetsThePace) {
  const std::vector<StageTimes> all = {{1, 2, 0.5}, {4, 5, 1}, {0.5, 0.5, 0}};
  for (const bool is_1f1b : {false, true})
    for (const int count : {1, 3, 8}) {
      const double seconds = pipeline_seconds(all, count, is_1f1b);
      EXPECT_GE(seconds, 9.0 * count);
      EXPECT_LE(seconds, 9.0 * count + 3 + 1 + 1.5 + 4);
    }
  EXPECT_DOUBLE_EQ(pipeline_seconds({{1, 2, 0.5}}, 8, true), 24.5);
}

// --- a network that is divided -------------------------------------------------------------------

TEST(SplitSegments, PartsOfTheRankWithMostHaveACeilingOfTheChannels) {
  const network::NetworkDescription network = builtin_network("alexnet", 2);
  for (const int ranks : {1, 2, 3, 4}) {
    std::int64_t parameters = 0;
    for (const SplitSegment& segment : split_segments(network, ranks)) {
      parameters += network::parameter_count(segment.part);
      if (segment.layer == "fc1") {
        EXPECT_EQ(segment.part.layers.front().output.channels, (4096 + ranks - 1) / ranks);
      }
    }
    const auto all = network::parameter_count(network);
    EXPECT_GE(parameters, all / ranks) << ranks;
    EXPECT_LT(parameters, all / ranks + all / 10) << ranks;
  }
}

// The survey's own numbers for three devices, in MiB.
TEST(ActivationExchanges, TheSurveysCountingGivesItsNumbers) {
  const network::NetworkDescription network = builtin_network("alexnet", 128);
  std::map<std::string, double> survey;
  double all = 0;
  for (const ActivationExchange& e : activation_exchanges(network, 3)) {
    survey[e.from + " to " + e.to] = e.survey / (1 << 20);
    all += e.survey / (1 << 20);
  }
  EXPECT_NEAR(survey["conv2 to conv3"], 42.25, 0.005);
  EXPECT_NEAR(survey["conv5 to fc1"], 9, 0.005);
  EXPECT_NEAR(survey["fc1 to fc2"], 4, 0.005);
  EXPECT_NEAR(survey["fc2 to fc3"], 1.33, 0.005);
  EXPECT_NEAR(all, 56.58, 0.01);
}

TEST(ActivationExchanges, GroupsThatFitTheRanksExchangeNothing) {
  const network::NetworkDescription network = builtin_network("alexnet", 128);
  for (const ActivationExchange& e : activation_exchanges(network, 2)) {
    const bool is_grouped = e.to == "conv2" || e.to == "conv4" || e.to == "conv5";
    EXPECT_EQ(e.forward == 0, is_grouped) << e.to;
  }
  for (const ActivationExchange& e : activation_exchanges(network, 1))
    EXPECT_EQ(e.forward + e.backward + e.survey, 0) << e.to;
}

// --- times of layers -----------------------------------------------------------------------------

TEST(MeasuredLayerTimes, HaveEveryLayerAndAddUpToTheStep) {
  const data::Dataset images = bright_rows(64, 1);
  PlanStore plans(1);
  const network::NetworkDescription network = small_network(16);
  const TrainingSetup setup{
      .description = network, .use = UseSpec("simd"), .plans = &plans, .data = &images};
  MeasuredLayerTimes times(setup, 1, 1);
  const StepTimes& step = times.whole(16, 1);
  ASSERT_EQ(step.layers.size(), network.layers.size());
  double sum = 0;
  std::int64_t parameters = 0;
  for (const StepTimes::Layer& layer : step.layers) {
    EXPECT_GT(layer.forward, 0) << layer.name;
    sum += layer.forward + layer.backward;
    parameters += layer.parameters;
  }
  EXPECT_EQ(parameters, network::parameter_count(network));
  EXPECT_LT(sum, 2 * (step.forward + step.backward));
  EXPECT_GT(step.draw, 0);
  EXPECT_GT(step.update, 0);
  EXPECT_GT(step.free_step, 0);
  EXPECT_GE(step.slowest_step, step.slowest_gradient);
  EXPECT_EQ(&step, &times.whole(16, 1)) << "measured once";
  EXPECT_GT(times.split(16, 2, 1).slowest_step, 0);
}

}  // namespace
}  // namespace stepladder
