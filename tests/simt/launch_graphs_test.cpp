// Short runs on a device are timed as graphs: in order, on all sets of operands, and only where
// they can be recorded.
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "harness/io/csv.hpp"
#include "harness/measure/gpu_monitor.hpp"
#include "harness/results/problem_bench.hpp"
#include "harness/results/result_columns.hpp"
#include "kernels/common/cuda/launch.hpp"
#include "kernels/common/cuda/plan.hpp"
#include "kernels/sgd_update/sgd_update.hpp"
#include "tests/simt/multiprocessor.hpp"
#include "tests/simt/streams.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/verdict.hpp"

namespace stepladder {
namespace {

using sgd_update::Operands;
using sgd_update::Problem;
using sgd_update::SgdUpdate;

// --- the meter -----------------------------------------------------------------------------------

// A closure in place of a kernel, which takes the emulator a millisecond. x = (2 x + number) mod
// 1024: any other order, and any number left out, gives another x.
void mix(std::uint32_t* x, std::int64_t number) {
  simt::enqueue(cuda_stream(), [=] { *x = (2 * *x + static_cast<std::uint32_t>(number)) % 1024; });
}

// What the runs with these numbers give.
std::uint32_t mixed(const std::vector<std::int64_t>& numbers) {
  std::uint32_t x = 0;
  for (const std::int64_t number : numbers) x = (2 * x + static_cast<std::uint32_t>(number)) % 1024;
  return x;
}

class LaunchGraphs : public testing::Test {
 protected:
  Measured measure(const Subject& subject, const MeasureOptions& options) {
    nlohmann::json json = nlohmann::json::array();
    return Meter(json).measure({subject}, options)[0];
  }
  DeviceMemory x_ = device_memory(sizeof(std::uint32_t));
};

TEST_F(LaunchGraphs, HaveSeveralRunsInOrder) {
  const simt::DeferredStreams deferred;
  auto* x = static_cast<std::uint32_t*>(x_.get());
  std::vector<std::int64_t> numbers;
  const Measured measured = measure({.name = "mixes",
                                     .run =
                                         [&](std::int64_t i) {
                                           numbers.push_back(i);
                                           mix(x, i);
                                         },
                                     .clock = Clock::device},
                                    {.repetitions = 2, .budget_seconds = 0.2});
  EXPECT_EQ(measured.error, "");
  EXPECT_EQ(measured.runs_per_launch, 20);
  EXPECT_EQ(measured.launches, "launched as graphs of 20 runs");
  for (const Sample& sample : measured.samples) {
    EXPECT_GT(sample.iterations, 0);
    EXPECT_EQ(sample.iterations % 20, 0);
    EXPECT_GT(sample.seconds, 0);
    EXPECT_LT(sample.seconds, 1e-3) << "it is of one run";
  }
  // x is now what the last 20 runs, those of a graph, make of anything: 2^20 is 0 modulo 1024.
  std::uint32_t last = 0;
  device()->download(&last, x, sizeof last);
  EXPECT_EQ(last, mixed(std::vector<std::int64_t>(numbers.end() - 20, numbers.end())));
  EXPECT_EQ(numbers.back(), 19);
}

TEST_F(LaunchGraphs, RotateThroughAllSetsOfOperands) {
  struct Row {
    std::size_t sets, used;
    std::int64_t runs;
  };
  for (const Row& row : {Row{1, 1, 20}, Row{3, 3, 18}, Row{20, 20, 20}, Row{21, 20, 10},
                         Row{39, 38, 19}, Row{100, 100, 20}}) {
    auto* x = static_cast<std::uint32_t*>(x_.get());
    std::set<std::size_t> used;
    const Measured measured = measure({.name = "rotates",
                                       .run =
                                           [&](std::int64_t i) {
                                             const auto set =
                                                 static_cast<std::size_t>(i) % row.sets;
                                             used.insert(set);
                                             mix(x, static_cast<std::int64_t>(set));
                                           },
                                       .clock = Clock::device,
                                       .operand_sets = row.sets},
                                      {.repetitions = 2, .budget_seconds = 0.2});
    EXPECT_EQ(measured.runs_per_launch, row.runs) << row.sets;
    EXPECT_GE(used.size(), row.used) << row.sets;
    EXPECT_EQ(measured.samples[0].iterations % row.runs, 0) << row.sets;
  }
}

// A GPU that idles has low clocks.
TEST_F(LaunchGraphs, ComeAfterWorkThatRaisesTheClocks) {
  nlohmann::json json = nlohmann::json::array();
  Meter meter(json);
  std::int64_t runs = 0;
  auto* x = static_cast<std::uint32_t*>(x_.get());
  const Subject subject{.name = "mixes",
                        .run =
                            [&](std::int64_t i) {
                              ++runs;
                              mix(x, i);
                            },
                        .clock = Clock::device};
  const auto runs_of_one = [&] {
    const std::int64_t before = runs;
    meter.measure({subject}, {.repetitions = 2, .budget_seconds = 0.02});
    return runs - before;
  };
  EXPECT_GT(runs_of_one(), 100);
  EXPECT_EQ(runs_of_one(), 6 + 20) << "the device had work just before";
}

TEST(GpuMonitor, HasNoValuesOfADeviceThatNvmlDoesNotKnow) {
  const GpuMonitor monitor;
  EXPECT_NE(monitor.why_unavailable(), "");
  EXPECT_TRUE(monitor.driver().is_null());
  EXPECT_TRUE(monitor.power_limit_watts().is_null());
  EXPECT_TRUE(monitor.clocks().at("sm_mhz").is_null());
  EXPECT_TRUE(monitor.highest_clocks().at("memory_mhz").is_null());
}

// The calibration loops of the CPU are expected to take a nanosecond: all repetitions are
// disturbed.
TEST_F(LaunchGraphs, OnADeviceRepetitionsAreNotMarkedForWhatSlowsTheCpu) {
  nlohmann::json json = nlohmann::json::array();
  Meter meter(json);
  meter.guard().expect({1e-9, 1e-9});
  auto* x = static_cast<std::uint32_t*>(x_.get());
  const std::vector<Measured> measured = meter.measure(
      {{.name = "device", .run = [x](std::int64_t i) { mix(x, i); }, .clock = Clock::device},
       {.name = "cpu", .run = [](std::int64_t) {}}},
      {.repetitions = 3, .budget_seconds = 0.01});
  EXPECT_FALSE(measured[0].is_disturbed());
  EXPECT_TRUE(measured[1].is_disturbed());
}

TEST_F(LaunchGraphs, AreNotMadeOfSlowRuns) {
  const std::size_t graphs = simt::calls.graphs;
  const Measured measured = measure(
      {.name = "slow", .run = [](std::int64_t) {}, .clock = Clock::device, .estimate_seconds = 0.1},
      {.repetitions = 2, .budget_seconds = 0.2});
  EXPECT_EQ(measured.runs_per_launch, 1);
  EXPECT_EQ(measured.launches, "");
  EXPECT_EQ(simt::calls.graphs, graphs);
}

TEST_F(LaunchGraphs, AreNotMadeWhereTheSubjectForbidsIt) {
  const Measured measured = measure({.name = "several",
                                     .run = [](std::int64_t) {},
                                     .clock = Clock::device,
                                     .why_not_recorded = "on several GPUs"},
                                    {.repetitions = 2, .budget_seconds = 0.002});
  EXPECT_EQ(measured.runs_per_launch, 1);
  EXPECT_EQ(measured.launches, "launched one by one: on several GPUs");
}

// --- rows ----------------------------------------------------------------------------------------

void update(const Problem& p, const Operands& o) {
  simt::enqueue(cuda_stream(), [=] {
    for (std::int64_t i = 0; i < p.count; ++i) o.weights[i] -= o.learning_rate * o.gradient[i];
  });
}
void update_and_allocate(const Problem& p, const Operands& o) {
  const DeviceMemory memory = device_memory(4);
  update(p, o);
}
void update_and_wait(const Problem& p, const Operands& o) {
  update(p, o);
  device()->synchronize();
}

// Right when it is launched by itself, but a graph of it does nothing.
class EmptyWhenRecorded final : public sgd_update::Plan {
 public:
  EmptyWhenRecorded(const Problem& problem, const Resources&) : problem_(problem) {}
  void run(const Operands& o) override {
    if (simt::is_captured(cuda_stream())) return;
    update(problem_, o);
  }

 private:
  Problem problem_;
};

Variant on_device(const char* name, Factory<SgdUpdate> factory) {
  static std::deque<VariantInfo> infos;
  Variant variant = unregistered<SgdUpdate>(name, factory);
  infos.push_back(*variant.info);
  infos.back().place = Place::cuda;
  variant.info = variant.entry.info = &infos.back();
  return variant;
}

class LaunchGraphsOfRows : public testing::Test {
 protected:
  CsvRow row_of(const Variant& variant) {
    stepladder::Run run({.directory = folder_ / "run", .command = "test", .threads = {}});
    ProblemBench bench(run, {.measure = {.repetitions = 5, .budget_seconds = 0.05}});
    const auto problem = make_case<SgdUpdate>({.count = 50}, "s", "weights");
    bench.measure(*problem, {variant});
    file_.emplace(folder_ / "run/summary.csv", summary_columns().names());
    return file_->rows().front();
  }

  TemporaryFolder folder_;
  std::optional<CsvFile> file_;
};

TEST_F(LaunchGraphsOfRows, AreInTheRemarkAndTheRowIsVerified) {
  const CsvRow row = row_of(on_device("update", plan_of<update>));
  EXPECT_EQ(row.text("status"), "ok");
  EXPECT_EQ(row.text("verified"), "yes");
  EXPECT_TRUE(says(row.text("reason"), {"launched as graphs of 20 runs"}));
}

TEST_F(LaunchGraphsOfRows, AreReplacedBySingleLaunchesWhereAPlanCannotBeRecorded) {
  const CsvRow row = row_of(on_device("allocates", plan_of<update_and_allocate>));
  EXPECT_EQ(row.text("status"), "ok");
  EXPECT_EQ(row.text("verified"), "yes");
  EXPECT_TRUE(says(row.text("reason"), {"launched one by one: cudaMalloc"}));
}

TEST_F(LaunchGraphsOfRows, AreReplacedBySingleLaunchesWhereAPlanWaits) {
  const CsvRow row = row_of(on_device("waits", plan_of<update_and_wait>));
  EXPECT_EQ(row.text("status"), "ok");
  EXPECT_TRUE(says(row.text("reason"), {"launched one by one: cudaStreamSynchronize"}));
}

TEST_F(LaunchGraphsOfRows, AreVerified) {
  const CsvRow row = row_of(on_device("empty", make_plan<SgdUpdate, EmptyWhenRecorded>));
  EXPECT_EQ(row.text("status"), "failed");
  EXPECT_TRUE(says(row.text("reason"), {"after the timing"}));
}

}  // namespace
}  // namespace stepladder
