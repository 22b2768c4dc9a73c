// Timing is right within the noise of a shared machine, subjects take turns, every sample is kept.
#include "harness/measure/measure.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "harness/io/now.hpp"
#include "harness/measure/work_record.hpp"
#include "kernels/common/cpu/instructions.hpp"
#include "tests/error_messages.hpp"

namespace stepladder {
namespace {

Subject sleeper(const std::string& name, double seconds) {
  return {.name = name, .run = [seconds](std::int64_t) {
            std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
          }};
}

class Measure : public testing::Test {
 protected:
  std::vector<Measured> measure(const std::vector<Subject>& subjects,
                                const MeasureOptions& options) {
    return meter.measure(subjects, options);
  }
  nlohmann::json json = nlohmann::json::array();
  Meter meter{json};
};

TEST(MeasureRepeats, FillAShareOfTheBudgetEachAndTheBudgetTogether) {
  struct Row {
    double estimate;
    std::int64_t iterations;
    int repetitions;
  };
  // Of 10 repetitions in 1 s each has 0.1 s.
  for (const Row& row : {Row{0.001, 100, 10}, Row{0.03, 3, 10}, Row{0.09, 1, 10}, Row{0.12, 1, 8},
                         Row{0.25, 1, 4}, Row{0.28, 1, 4}, Row{0.6, 1, 2}, Row{30, 1, 2},
                         Row{0.99e-7, 1000000, 10}, Row{1e-8, 1000000, 10}}) {
    const Repeats found = repeats_of(row.estimate, {.repetitions = 10, .budget_seconds = 1});
    EXPECT_EQ(found.iterations, row.iterations) << row.estimate;
    EXPECT_EQ(found.repetitions, row.repetitions) << row.estimate;
  }
}

TEST(MeasureRepeats, AreOneAboveALimit) {
  const MeasureOptions options{.repetitions = 10, .budget_seconds = 0.1, .once_above = 0.6};
  EXPECT_EQ(repeats_of(0.59, options).repetitions, 2);
  EXPECT_EQ(repeats_of(0.6, options).repetitions, 1);
  EXPECT_EQ(repeats_of(30, options).repetitions, 1);
}

TEST(MeasureRepeats, HaveWholeGraphsOfRuns) {
  const MeasureOptions options{.repetitions = 10, .budget_seconds = 1};
  EXPECT_EQ(repeats_of(0.001, options, 20).iterations, 100);
  EXPECT_EQ(repeats_of(0.001, options, 30).iterations, 90);
  const Repeats one_graph = repeats_of(0.03, options, 20);
  EXPECT_EQ(one_graph.iterations, 20);
  EXPECT_EQ(one_graph.repetitions, 2);
}

TEST_F(Measure, ASleepTakesAsLongAsItIs) {
  const auto measured =
      measure({sleeper("sleep", 0.002)}, {.repetitions = 7, .budget_seconds = 0.1});
  const Summary summary = summarize(measured[0].seconds());
  EXPECT_GE(summary.min, 0.002);
  EXPECT_LT(summary.min, 0.004);
  EXPECT_EQ(measured[0].error, "");
}

TEST_F(Measure, ShortRunsAreRepeatedUntilTheClockSeesThem) {
  std::int64_t calls = 0;
  const auto measured = measure({{.name = "short", .run = [&](std::int64_t) { ++calls; }}},
                                {.repetitions = 3, .budget_seconds = 0.003});
  EXPECT_GT(measured[0].samples.front().iterations, 1000);
  EXPECT_GT(calls, 3000);
  EXPECT_LT(measured[0].samples.front().seconds, 1e-5);
}

TEST_F(Measure, ASlowSubjectGetsFewerRepetitionsAndANote) {
  const auto measured = measure({sleeper("slow", 0.03), sleeper("quick", 0.0005)},
                                {.repetitions = 9, .budget_seconds = 0.1});
  EXPECT_GE(measured[0].samples.size(), 2U);
  EXPECT_LT(measured[0].samples.size(), 9U);
  EXPECT_TRUE(says(measured[0].note, {"repetitions instead of 9: slow"}));
  EXPECT_GE(measured[1].samples.size(), 9U);
  EXPECT_EQ(measured[1].note, "");
}

TEST_F(Measure, ASubjectThatThrowsHasAnErrorAndTheOthersContinue) {
  int calls = 0;
  const auto throws = [](std::int64_t) { throw std::runtime_error("out of tiles"); };
  const auto throws_later = [&](std::int64_t) {
    if (++calls > 1) throw std::runtime_error("worn out");
  };
  const auto measured =
      measure({{.name = "throws at once", .run = throws},
               {.name = "throws later", .run = throws_later, .estimate_seconds = 1},
               sleeper("correct", 0.0005)},
              {.repetitions = 5, .budget_seconds = 0.1});
  EXPECT_EQ(measured[0].error, "out of tiles");
  EXPECT_EQ(measured[1].error, "worn out");
  EXPECT_EQ(measured[2].error, "");
  EXPECT_GE(measured[2].samples.size(), 5U);
}

TEST_F(Measure, EveryRoundHasOneRepetitionOfEachInItsOwnOrder) {
  constexpr std::size_t count = 5, rounds = 8;
  std::vector<std::size_t> order;
  std::vector<Subject> subjects;
  // With a long estimate nothing runs before, and a repetition has one iteration.
  for (std::size_t s = 0; s < count; ++s)
    subjects.push_back({.name = "subject " + std::to_string(s),
                        .run = [&order, s](std::int64_t) { order.push_back(s); },
                        .estimate_seconds = 1});
  const auto measured = measure(subjects, {.repetitions = rounds, .budget_seconds = rounds});
  ASSERT_GE(order.size(), count * rounds);
  std::set<std::vector<std::size_t>> orders;
  for (std::size_t round = 0; round < rounds; ++round) {
    const auto first = order.begin() + static_cast<std::ptrdiff_t>(round * count);
    orders.emplace(first, first + count);
    EXPECT_EQ(std::set<std::size_t>(first, first + count).size(), count) << "round " << round;
  }
  EXPECT_GT(orders.size(), 1U);
  for (const Measured& m : measured)
    for (std::size_t i = 0; i < m.samples.size(); ++i)
      EXPECT_EQ(m.samples[i].round, static_cast<int>(i));
}

// Operands rotate with it through the copies of a cold row.
TEST_F(Measure, EveryIterationHasTheNextNumber) {
  for (const Clock clock : {Clock::wall, Clock::ranks}) {
    std::vector<std::int64_t> numbers;
    const auto count = [&](std::int64_t iteration) { numbers.push_back(iteration); };
    const auto measured =  // nothing runs before
        measure({{.name = "counts", .run = count, .clock = clock, .estimate_seconds = 0.19}},
                {.repetitions = 3, .budget_seconds = 3});
    ASSERT_EQ(measured[0].samples[0].iterations, 5);
    ASSERT_EQ(numbers.size(), 5 * measured[0].samples.size());
    for (std::size_t i = 0; i < numbers.size(); ++i)
      EXPECT_EQ(numbers[i], static_cast<std::int64_t>(i));
  }
}

// The first call is the first use of the operands; the time of the second is an estimate.
TEST_F(Measure, AShortSubjectRunsTwiceOnTheFirstOperandsBeforeItIsTimed) {
  std::vector<std::int64_t> numbers;
  const auto count = [&](std::int64_t iteration) {
    numbers.push_back(iteration);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  measure({{.name = "counts", .run = count, .estimate_seconds = 0.099}},
          {.repetitions = 2, .budget_seconds = 0.01});
  ASSERT_GE(numbers.size(), 4U);
  EXPECT_EQ(numbers[0], 0);
  EXPECT_EQ(numbers[1], 0);
  for (std::size_t i = 2; i < numbers.size(); ++i)
    EXPECT_EQ(numbers[i], static_cast<std::int64_t>(i - 2));
}

TEST_F(Measure, ASubjectThatTakesTheWholeBudgetRunsOnceBeforeItIsTimed) {
  int runs = 0;
  const auto run = [&](std::int64_t) {
    ++runs;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  const auto measured =
      measure({{.name = "slow", .run = run}}, {.repetitions = 9, .budget_seconds = 0.01});
  EXPECT_EQ(measured[0].samples.size(), 2U);
  EXPECT_EQ(runs, 3);
}

// A supervisor ends a process whose subject does not return within a multiple of it.
TEST_F(Measure, TheWorkRecordSaysHowLongARepetitionShouldTake) {
  WorkRecord* const before = kept_work_record();
  WorkRecord* const record = new_work_record();
  keep_work_record(record);
  std::vector<double> expected;
  const auto run = [&](std::int64_t) { expected.push_back(record->seconds); };
  const auto measured = measure({{.name = "watched", .run = run, .estimate_seconds = 0.2}},
                                {.repetitions = 2, .budget_seconds = 2});
  keep_work_record(before);
  ASSERT_EQ(measured[0].samples[0].iterations, 5);
  ASSERT_FALSE(expected.empty());
  for (const double seconds : expected) EXPECT_NEAR(seconds, 5 * 0.2, 1e-9);
}

TEST_F(Measure, TimesAndCyclesAreOfOneIteration) {
  for (const Clock clock : {Clock::wall, Clock::ranks}) {
    Subject subject = sleeper("sleep", 0.002);
    subject.clock = clock;
    const auto measured = measure({subject}, {.repetitions = 3, .budget_seconds = 0.1});
    const auto& samples = measured[0].samples;
    EXPECT_GT(samples[0].iterations, 1);
    const Sample fastest = *std::ranges::min_element(
        samples, [](const Sample& a, const Sample& b) { return a.seconds < b.seconds; });
    EXPECT_GE(fastest.seconds, 0.002);
    EXPECT_LT(fastest.seconds, 0.004);
    const double cycles_per_second = fastest.reference_cycles / fastest.seconds;
    EXPECT_GT(cycles_per_second, 5e8);
    EXPECT_LT(cycles_per_second, 1e10);
  }
}

// Both calibration loops seem eight times slower than in an earlier run.
TEST_F(Measure, EachDisturbedRepetitionIsReplacedOnceUnlessTheSubjectIsSlow) {
  const Calibration own = meter.guard().fastest();
  meter.guard().expect({own.latency / 8, own.throughput / 8});
  const auto measured =
      measure({sleeper("quick", 0.0005),
               {.name = "slow", .run = [](std::int64_t) {}, .estimate_seconds = 0.1}},
              {.repetitions = 5, .budget_seconds = 0.3});
  EXPECT_EQ(measured[0].samples.size(), 10U);
  EXPECT_EQ(measured[1].samples.size(), 3U);
  EXPECT_EQ(measured[1].note, "3 repetitions instead of 5: slow");
  for (const Measured& row : measured) {
    EXPECT_TRUE(row.is_disturbed());
    for (const Sample& sample : row.samples) {
      EXPECT_TRUE(sample.disturbed);
      EXPECT_GT(sample.calibration_ratio, 4);
    }
  }
  EXPECT_EQ(meter.noise().repetitions, 13);
  EXPECT_EQ(meter.noise().disturbed, 13);
  EXPECT_GT(meter.noise().elapsed_seconds, 10 * 0.0005);
}

TEST_F(Measure, NamesThatLookAlikeAreTimedApart) {
  int one = 0, twelve = 0, pattern = 0;
  const auto counter = [](int& calls) { return [&calls](std::int64_t) { ++calls; }; };
  measure({{.name = "a/threads:1", .run = counter(one), .estimate_seconds = 1},
           {.name = "a/threads:12", .run = counter(twelve), .estimate_seconds = 1},
           {.name = "a/threads:.*", .run = counter(pattern), .estimate_seconds = 1}},
          {.repetitions = 3, .budget_seconds = 3});
  for (const int calls : {one, twelve, pattern}) {
    EXPECT_GE(calls, 3);
    EXPECT_LE(calls, 6);  // disturbed repetitions are replaced
  }
}

TEST_F(Measure, GoogleBenchmarksRecordsAreKept) {
  const auto measured =
      measure({sleeper("kept", 0.0005)}, {.repetitions = 3, .budget_seconds = 0.01});
  ASSERT_EQ(json.size(), measured[0].samples.size());
  EXPECT_EQ(json[0]["name"].get<std::string>().find("kept"), 0U);
}

TEST_F(Measure, ASignalEndsBetweenTwoRepetitionsAndLeavesTheMeterUsable) {
  const Subject stops{
      .name = "stops", .run = [](std::int64_t) { interrupted = true; }, .estimate_seconds = 1};
  EXPECT_THROW(measure({stops}, {.repetitions = 3, .budget_seconds = 3}), Interrupted);
  interrupted = false;
  EXPECT_EQ(
      measure({sleeper("after", 0.0005)}, {.repetitions = 2, .budget_seconds = 0.01})[0].error, "");
}

TEST_F(Measure, TheLastSentenceCountsRepetitions) {
  EXPECT_EQ(meter.noise().sentence(), "Nothing was timed.");
  const auto measured =
      measure({sleeper("sleep", 0.0005)}, {.repetitions = 4, .budget_seconds = 0.01});
  EXPECT_TRUE(says(meter.noise().sentence(),
                   {"of " + std::to_string(measured[0].samples.size()) + " repetitions"}));
}

// Rounds of (seconds, disturbed).
Measured measured_of(const std::vector<std::pair<double, bool>>& rounds) {
  Measured measured;
  for (const auto& [seconds, disturbed] : rounds) {
    Sample sample;
    sample.round = static_cast<int>(measured.samples.size());
    sample.seconds = seconds;
    sample.disturbed = disturbed;
    measured.samples.push_back(sample);
  }
  return measured;
}

// Undisturbed samples count alone if they are two or more and half of all. Otherwise the row is
// disturbed.
TEST(Measured, DisturbedSamplesDoNotCountWhileEnoughOthersDo) {
  const Measured few = measured_of({{1, false}, {9, true}, {2, false}});
  EXPECT_EQ(few.samples.size(), 3U);
  EXPECT_EQ(few.seconds(), (std::vector<double>{1, 2}));
  EXPECT_FALSE(few.is_disturbed());
  for (const Measured& most :
       {measured_of({{1, false}, {9, true}}),
        measured_of({{1, false}, {9, true}, {8, true}, {2, false}, {7, true}})}) {
    EXPECT_EQ(most.seconds().size(), most.samples.size());
    EXPECT_TRUE(most.is_disturbed()) << most.samples.size() << " samples";
  }
}

TEST(Measured, RatiosAreOfTheSameUndisturbedRounds) {
  const Measured slow = measured_of({{2, false}, {8, false}, {100, true}, {6, false}});
  const Measured fast = measured_of({{1, false}, {4, false}, {1, false}, {3, false}});
  const Summary both = ratio(slow, fast);
  EXPECT_EQ(both.count, 3);
  EXPECT_DOUBLE_EQ(both.median, 2);
  EXPECT_DOUBLE_EQ(both.ci_high, 2);
}

TEST(Measured, WithoutARoundInCommonTheRatioIsThatOfTheMedians) {
  const Measured slow = measured_of({{2, false}, {6, false}, {4, false}});
  Measured fast = measured_of({{1, false}, {2, false}, {9, false}});
  for (Sample& sample : fast.samples) sample.round += 1000;
  const Summary both = ratio(slow, fast);
  EXPECT_EQ(both.count, 1);
  EXPECT_DOUBLE_EQ(both.median, 2);
}

TEST(Measured, TwoUndisturbedRoundsInCommonAreEnoughForARatio) {
  const Measured above = measured_of({{2, false}, {30, false}, {90, true}, {7, false}});
  const Measured below = measured_of({{1, false}, {10, false}, {1, false}, {1, true}});
  EXPECT_EQ(ratio(above, below).count, 2);
  EXPECT_DOUBLE_EQ(ratio(above, below).median, 2.5);
}

TEST(Measured, WithFewerTheRatioIsOverAllThatCount) {
  // Round 0 alone is undisturbed in both, and most samples of the first are disturbed.
  const Measured above = measured_of({{2, false}, {100, true}, {50, true}});
  const Measured below = measured_of({{1, false}, {10, false}, {25, false}});
  EXPECT_EQ(ratio(above, below).count, 3);
  EXPECT_DOUBLE_EQ(ratio(above, below).median, 2);
  EXPECT_DOUBLE_EQ(ratio(above, below).ci_high, 10);
}

TEST(Measured, WithoutSamplesThereIsNoRatio) {
  const Measured some = measured_of({{2, false}, {3, false}});
  EXPECT_EQ(ratio(some, Measured{}).count, 0);
  EXPECT_EQ(ratio(Measured{}, some).count, 0);
}

TEST(Disturbance, ASlowClockStolenTimeAndALostCoreAreLarge) {
  EXPECT_FALSE((Disturbance{.elapsed = 0.1}).is_large());
  EXPECT_FALSE((Disturbance{.elapsed = 0.1, .calibration_ratio = 1.25}).is_large());
  EXPECT_TRUE((Disturbance{.elapsed = 0.1, .calibration_ratio = 1.26}).is_large());
  EXPECT_FALSE((Disturbance{.stolen = 0.005}).is_large());  // half a tick of the kernel's clock
  EXPECT_TRUE((Disturbance{.elapsed = 0.1, .stolen = 0.01}).is_large());
  EXPECT_FALSE((Disturbance{.elapsed = 1, .stolen = 0.02}).is_large());
  EXPECT_TRUE((Disturbance{.elapsed = 1, .stolen = 0.03}).is_large());
  EXPECT_FALSE((Disturbance{.elapsed = 0.1, .queued = 0.002}).is_large());
  EXPECT_TRUE((Disturbance{.elapsed = 0.1, .queued = 0.003}).is_large());
}

TEST(NoiseGuard, CalibrationIsRelativeToTheFastestSeen) {
  NoiseGuard guard;
  for (int i = 0; i < 20; ++i) {
    guard.start();
    EXPECT_GE(guard.stop().calibration_ratio, 1.0);
  }
  EXPECT_GE(NoiseGuard::stolen_seconds(), 0.0);
}

// Processes that run until the test ends: one for each core if there are several, else on any core.
// Without cores of their own two of them may share one and leave the other to us.
class OtherProcesses {
 public:
  OtherProcesses(int count, void (*work)()) {
    for (int i = 0; i < count; ++i) {
      const pid_t process = fork();
      if (process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        cpu_set_t cores;
        CPU_ZERO(&cores);
        for (int core = 0; core < CPU_SETSIZE; ++core)
          if (count == 1 || core == i) CPU_SET(core, &cores);
        sched_setaffinity(0, sizeof cores, &cores);
        for (;;) work();
      }
      processes_.push_back(process);
    }
  }
  ~OtherProcesses() {
    for (const pid_t process : processes_) {
      kill(process, SIGKILL);
      waitpid(process, nullptr, 0);
    }
  }

 private:
  std::vector<pid_t> processes_;
};

void spin() {
  for (int i = 0; i < 1000; ++i) pause_core();
}
void stream() {
  static std::vector<char> memory(std::size_t{64} << 20U);
  std::ranges::fill(memory, static_cast<char>(memory.back() + 1));
}

class Neighbour : public testing::TestWithParam<std::pair<int, void (*)()>> {};

TEST_P(Neighbour, IsNoticed) {
  const auto [count, work] = GetParam();
  nlohmann::json json = nlohmann::json::array();
  Meter meter(json);
  std::uint64_t x = 1;
  const Subject subject{.name = "computes", .run = [&](std::int64_t) {
                          for (int i = 0; i < 100000; ++i) {
                            x = x * 3 + 1;
                            asm volatile("" : "+r"(x));
                          }
                        }};
  const OtherProcesses others(count, work);
  const double start = now();
  const auto measured = meter.measure({subject}, {.repetitions = 40, .budget_seconds = 1});
  double queued = 0;
  for (const Sample& sample : measured[0].samples) queued += sample.queued_seconds;
  if (count > 1) {  // one for each core: ours must wait
    EXPECT_GT(queued, 0.1);
    EXPECT_LT(queued, now() - start);
  }
  EXPECT_TRUE(measured[0].is_disturbed());
  EXPECT_EQ(measured[0].samples.size(), 80U) << "each of 40 is replaced once";
  EXPECT_GT(meter.noise().others_seconds, 0.3);
  const double cores = static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  EXPECT_LT(meter.noise().others_seconds, cores * (now() - start) + 0.2);  // each second once
  EXPECT_TRUE(says(meter.noise().sentence(), {"The machine was noisy", "stop what else runs"}));
}

TEST(NoiseNeighbours, AreBusyWithOneProcessAndStaySoForAShortInterval) {
  Neighbours neighbours;
  EXPECT_FALSE(neighbours.are_busy());  // nothing is known yet
  const OtherProcesses others(1, &spin);
  neighbours.restart();
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  EXPECT_GT(neighbours.cpu_seconds(), 0.1);
  EXPECT_TRUE(neighbours.are_busy());
  neighbours.restart();
  EXPECT_TRUE(neighbours.are_busy());
}

// Emulated hosts share the cores, so that their ranks wait for each other.
TEST(NoiseNeighbours, WaitingForACoreOfEmulatedHostsIsNoDisturbance) {
  const OtherProcesses others(static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)), &spin);
  setenv("STEPLADDER_NETWORK", "1", 1);
  nlohmann::json json = nlohmann::json::array();
  Meter meter(json);
  unsetenv("STEPLADDER_NETWORK");
  const auto measured = meter.measure({{.name = "spins", .run = [](std::int64_t) { spin(); }}},
                                      {.repetitions = 10, .budget_seconds = 0.3});
  for (const Sample& sample : measured[0].samples) EXPECT_EQ(sample.queued_seconds, 0);
}

INSTANTIATE_TEST_SUITE_P(Processes, Neighbour,
                         testing::Values(std::pair(static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)),
                                                   &spin),
                                         std::pair(1, &stream)));

}  // namespace
}  // namespace stepladder
