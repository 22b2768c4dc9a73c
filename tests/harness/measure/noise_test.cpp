// The marks of noise, by hand; measure_test.cpp has neighbours that really run.
#include "harness/measure/noise.hpp"

#include <gtest/gtest.h>
#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "harness/io/now.hpp"
#include "harness/measure/measure.hpp"
#include "tests/error_messages.hpp"

namespace stepladder {
namespace {

NoiseTally tally(std::int64_t repetitions, std::int64_t disturbed) {
  return {repetitions, disturbed, 12.4, 3.25, 5.75};
}

TEST(NoiseTally, TheSentenceHasTheShareAndWhatOthersUsed) {
  EXPECT_EQ(tally(0, 0).sentence(), "Nothing was timed.");
  EXPECT_EQ(tally(1000, 49).sentence(),
            "The machine was quiet: 49 of 1000 repetitions (5 %) were disturbed in 12 s of timing; "
            "other processes used 5.8 s of CPU time on its cores, other virtual machines 3.2 s.");
  for (const auto& [disturbed, word] : std::vector<std::pair<int, const char*>>{
           {50, "somewhat noisy"}, {249, "somewhat noisy"}, {250, "noisy"}, {1000, "noisy"}})
    EXPECT_TRUE(says(tally(1000, disturbed).sentence(),
                     {std::string("The machine was ") + word + ": ",
                      " s. Rows marked disturbed may show too long times: stop what else runs, and "
                      "measure again (bench: with --resume --again)."}))
        << disturbed;
}

TEST(NoiseTally, EveryPartIsAdded) {
  NoiseTally sum = tally(5, 2);
  sum += {.repetitions = 10,
          .disturbed = 3,
          .elapsed_seconds = 1,
          .stolen_seconds = 2,
          .others_seconds = 4};
  EXPECT_EQ(sum.repetitions, 15);
  EXPECT_EQ(sum.disturbed, 5);
  EXPECT_DOUBLE_EQ(sum.elapsed_seconds, 13.4);
  EXPECT_DOUBLE_EQ(sum.stolen_seconds, 5.25);
  EXPECT_DOUBLE_EQ(sum.others_seconds, 9.75);
}

TEST(ShortestTimes, FourTimesOfAClockThatJumpedDoNotCount) {
  ShortestTime shortest;
  for (const double seconds : {4.0, 3.0, 3.1, 5.0}) shortest.add(seconds);
  EXPECT_EQ(shortest.seconds(), Calibration::unknown);
  shortest.add(3.2);
  EXPECT_EQ(shortest.seconds(), 5);
  for (const double seconds : {3.3, 3.05, 9.0}) shortest.add(seconds);
  EXPECT_EQ(shortest.seconds(), 3.3);
  for (const double seconds : {0.1, 0.2, 0.1, 0.3}) shortest.add(seconds);
  EXPECT_EQ(shortest.seconds(), 3.0);
}

TEST(NoiseGuardOf, ShorterTimesOfEarlierRunsCount) {
  NoiseGuard guard;
  const Calibration own = guard.fastest();
  EXPECT_GT(own.latency, 0);
  EXPECT_GT(own.throughput, 0);
  EXPECT_LT(own.latency, 0.01);
  EXPECT_LT(own.throughput, 0.01);
  guard.expect({1, 1});  // longer
  EXPECT_EQ(guard.fastest().latency, own.latency);
  EXPECT_EQ(guard.fastest().throughput, own.throughput);
  guard.expect({own.latency / 8, 1});
  EXPECT_EQ(guard.fastest().latency, own.latency / 8);
  EXPECT_EQ(guard.fastest().throughput, own.throughput);
  guard.start();
  const Disturbance slow = guard.stop();
  EXPECT_GT(slow.calibration_ratio, 4);
  EXPECT_TRUE(slow.is_large());
  NoiseGuard other;
  other.expect({1, other.fastest().throughput / 8});
  other.start();
  EXPECT_GT(other.stop().calibration_ratio, 4);
}

TEST(NoiseGuardOf, TheIntervalIsThatBetweenStartAndStop) {
  NoiseGuard guard;
  guard.find_threads();
  guard.start();
  const double start = now();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  const double slept = now() - start;
  const Disturbance found = guard.stop();
  EXPECT_GE(found.elapsed, 0.03);
  EXPECT_LT(found.elapsed, slept + 0.01);
  EXPECT_GE(found.stolen, 0);
  EXPECT_LT(found.stolen, 60);  // not since boot
  EXPECT_GE(found.queued, 0);
  EXPECT_LT(found.queued, 1);
}

TEST(NoiseGuardOf, RanksTakeTurnsIfThereAreMoreThanProcessorsOrHostsAreEmulated) {
  EXPECT_FALSE(take_turns(1, 2, false));
  EXPECT_FALSE(take_turns(2, 2, false));
  EXPECT_TRUE(take_turns(3, 2, false));
  EXPECT_TRUE(take_turns(1, 2, true));
}

std::ptrdiff_t open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator());
}

TEST(NoiseGuardOf, OneFileIsOpenForEachThreadUntilTheGuardEnds) {
  const std::ptrdiff_t before = open_files();
  {
    NoiseGuard guard;
    EXPECT_EQ(open_files(), before);
    guard.find_threads();
    const std::ptrdiff_t threads =
        std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                      std::filesystem::directory_iterator());
    EXPECT_EQ(open_files(), before + threads);
    guard.find_threads();
    EXPECT_EQ(open_files(), before + threads);
  }
  EXPECT_EQ(open_files(), before);
}

// --- /proc/stat ----------------------------------------------------------------------------------

// Ticks of each field are another power of two: user, nice, system, idle, waiting for I/O,
// interrupt, soft interrupt, stolen, guest.
const char* const proc_stat =
    "cpu  1001 2002 4004 8008 16016 32032 64064 128128 256256 0\n"
    "cpu0 1 2 4 8 16 32 64 128 256 0\n"
    "cpu1 1000 2000 4000 8000 16000 32000 64000 128000 256000 0\n"
    "cpu10 1000000 0 0 0 0 0 0 0 0 0\n"
    "intr 5 6 7\n"
    "ctxt 99\n";
double seconds(double ticks) { return ticks / static_cast<double>(sysconf(_SC_CLK_TCK)); }

double busy(const std::string& text, const std::vector<int>& cores) {
  std::istringstream in(text);
  return busy_seconds_in(in, cores);
}
double stolen(const std::string& text) {
  std::istringstream in(text);
  return stolen_seconds_in(in);
}

TEST(NoiseProcStat, ACoreIsBusyUnlessItIsIdleWaitsOrIsStolen) {
  EXPECT_DOUBLE_EQ(busy(proc_stat, {0}), seconds(1 + 2 + 4 + 32 + 64));
  EXPECT_DOUBLE_EQ(busy(proc_stat, {1}), seconds(103000));
  EXPECT_DOUBLE_EQ(busy(proc_stat, {0, 1}), seconds(103103));
  EXPECT_DOUBLE_EQ(busy(proc_stat, {10}), seconds(1000000));
  EXPECT_EQ(busy(proc_stat, {2}), 0);
  EXPECT_EQ(busy(proc_stat, {}), 0);
  EXPECT_DOUBLE_EQ(busy("cpu0 1 2 4\n", {0}), seconds(7));  // of an old kernel
}

TEST(NoiseProcStat, StolenTimeIsThatOfAllCores) {
  EXPECT_DOUBLE_EQ(stolen(proc_stat), seconds(128128));
  EXPECT_DOUBLE_EQ(stolen("cpu 1 2 3 4 5 6 7 8\n"), seconds(8));
  EXPECT_EQ(stolen("cpu 1 2 3 4 5 6 7\n"), 0);
  EXPECT_EQ(stolen(""), 0);
  const auto now = [] {
    std::ifstream in("/proc/stat");
    return stolen_seconds_in(in);
  };
  const double before = now(), found = NoiseGuard::stolen_seconds();
  EXPECT_GE(found, before);
  EXPECT_LE(found, now());
}

TEST(NoiseNeighbours, DisturbIfTheyUseMoreThanATwentiethOfOurCoresAndATenthOfOne) {
  EXPECT_FALSE(are_disturbing(0.09, 1, 1));
  EXPECT_TRUE(are_disturbing(0.11, 1, 1));
  EXPECT_FALSE(are_disturbing(0.18, 2, 2));
  EXPECT_TRUE(are_disturbing(0.22, 2, 2));
  EXPECT_FALSE(are_disturbing(0.49, 1, 10));
  EXPECT_TRUE(are_disturbing(0.51, 1, 10));
}

TEST(NoiseNeighbours, OurCoresAreThoseThatTheThreadMayRunOn) {
  if (omp_get_num_places() > 0) GTEST_SKIP() << "threads are bound to places";
  std::thread([] {
    cpu_set_t all;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    std::vector<int> expected;
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &all)) expected.push_back(core);
    EXPECT_EQ(own_cores(), expected);
    cpu_set_t last;
    CPU_ZERO(&last);
    CPU_SET(expected.back(), &last);
    ASSERT_EQ(sched_setaffinity(0, sizeof last, &last), 0);
    EXPECT_EQ(own_cores(), std::vector<int>{expected.back()});
  }).join();
}

// A busy thread of this process is no neighbour.
TEST(NoiseNeighbours, OurOwnTimeIsNotThatOfOthers) {
  Neighbours neighbours;
  neighbours.restart();
  const double start = now();
  while (now() - start < 0.3) {
  }
  const double elapsed = neighbours.elapsed();
  EXPECT_GE(elapsed, 0.3);
  EXPECT_LT(elapsed, 3);
  EXPECT_GE(neighbours.cpu_seconds(), 0);
  EXPECT_LT(neighbours.cpu_seconds(), elapsed * 256);
  neighbours.restart();
  EXPECT_LT(neighbours.elapsed(), 0.1);
  EXPECT_LT(neighbours.cpu_seconds(), 0.2);
}

// Of one thread there is nothing to tell.
TEST(NoiseCores, EverySampleOfATeamHasTheStateOfItsCores) {
  nlohmann::json json = nlohmann::json::array();
  Meter meter(json);
  for (const int threads : {1, 2}) {
    const Subject subject{.name = "team of " + std::to_string(threads),
                          .run = [](std::int64_t) {},
                          .estimate_seconds = 1,
                          .threads = threads};
    const auto measured = meter.measure({subject}, {.repetitions = 2, .budget_seconds = 2});
    ASSERT_GE(measured[0].samples.size(), 2U);
    for (const Sample& sample : measured[0].samples)
      EXPECT_EQ(sample.cores == Cores::unknown, threads == 1);
  }
}

}  // namespace
}  // namespace stepladder
