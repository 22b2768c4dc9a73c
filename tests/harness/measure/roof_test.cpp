// The roof of a problem on the CPU: between the sizes of two caches it has no step.
#include <gtest/gtest.h>

#include "harness/measure/ceilings.hpp"

namespace stepladder {
namespace {

constexpr CacheSizes caches{1000, 10'000, 100'000};
const std::vector<Ceiling> ceilings = {
    {"fma_peak", "GFLOP/s", 1, "", 100},    {"stream_read", "GB/s", 1, "L1", 80},
    {"stream_read", "GB/s", 1, "L2", 40},   {"stream_read", "GB/s", 1, "L3", 20},
    {"stream_read", "GB/s", 1, "DRAM", 10}, {"fma_peak", "GFLOP/s", 2, "", 200},
    {"stream_read", "GB/s", 2, "L1", 160},  {"stream_read", "GB/s", 2, "L2", 80},
    {"stream_read", "GB/s", 2, "L3", 40},   {"stream_read", "GB/s", 2, "DRAM", 20}};

Roof of_reads(double bytes, int threads = 1, bool cold = false) {
  ProblemInfo info;
  info.bytes_read = bytes;
  return roof_of(info, bytes, cold, threads, caches, ceilings);
}

TEST(Roof, IsThatOfTheLevelThatHoldsTheOperands) {
  EXPECT_DOUBLE_EQ(of_reads(1000).seconds, 1000 / 80e9);
  EXPECT_EQ(of_reads(1000).name, "stream_read_L1");
  EXPECT_DOUBLE_EQ(of_reads(1000, 1, true).seconds, 1000 / 10e9);
  EXPECT_EQ(of_reads(1000, 1, true).name, "stream_read_DRAM");
}

// By hand: L1 holds 1000 bytes, L2 9000 more, L3 90,000 more.
TEST(Roof, ACacheHoldsAPartOfOperandsThatDoNotFit) {
  EXPECT_DOUBLE_EQ(of_reads(4000).seconds, 1000 / 80e9 + 3000 / 40e9);
  EXPECT_EQ(of_reads(4000).name, "stream_read_L2");
  EXPECT_DOUBLE_EQ(of_reads(10'000).seconds, 1000 / 80e9 + 9000 / 40e9);
  EXPECT_DOUBLE_EQ(of_reads(200'000).seconds,
                   1000 / 80e9 + 9000 / 40e9 + 90'000 / 20e9 + 100'000 / 10e9);
  EXPECT_EQ(of_reads(200'000).name, "stream_read_DRAM");
  // Each of two threads has an L1 and an L2; the L3 is one.
  EXPECT_DOUBLE_EQ(of_reads(200'000, 2).seconds,
                   2000 / 160e9 + 18'000 / 80e9 + 80'000 / 40e9 + 100'000 / 20e9);
}

TEST(Roof, GrowsWithTheOperandsWithoutSteps) {
  double former = of_reads(100).seconds;
  for (double bytes = 100; bytes < 1e6; bytes *= 1.001) {
    const double seconds = of_reads(bytes).seconds;
    EXPECT_GE(seconds, former) << bytes;
    EXPECT_LE(seconds, 1.01 * former) << bytes;
    former = seconds;
  }
}

TEST(Roof, WithoutACacheOrACeilingIsThatOfTheRest) {
  ProblemInfo info;
  info.bytes_read = 4000;
  info.flops = 100;
  EXPECT_DOUBLE_EQ(roof_of(info, 4000, false, 1, {1000, 0, 0}, ceilings).seconds,
                   1000 / 80e9 + 3000 / 10e9);
  EXPECT_EQ(roof_of(info, 4000, false, 3, caches, ceilings).seconds, 0);
}

// Widened to fp32, fp16 has the FMA peak; int8 is not bounded by it where no peak of its own is.
TEST(Roof, HasThePeakOfThePrecision) {
  std::vector<Ceiling> peaks = ceilings;
  peaks.push_back({"bf16_peak", "GFLOP/s", 1, "", 800});
  ProblemInfo info;
  info.bytes_read = 10;
  info.flops = 1e6;
  const auto roof = [&](const char* precision) {
    info.precision = precision;
    return roof_of(info, 10, false, 1, caches, peaks);
  };
  EXPECT_DOUBLE_EQ(roof("").seconds, 1e6 / 100e9);
  EXPECT_DOUBLE_EQ(roof("fp16").seconds, 1e6 / 100e9);
  EXPECT_DOUBLE_EQ(roof("bf16").seconds, 1e6 / 800e9);
  EXPECT_EQ(roof("bf16").name, "bf16_peak");
  EXPECT_EQ(roof("int8").name, "stream_read_L1");
}

TEST(Ceilings, APeakOfSeveralThreadsIsComparedWithThatOfOne) {
  const auto peak = [](int threads, double value) {
    return std::vector<Ceiling>{{"fma_peak", "GFLOP/s", threads, "", value}};
  };
  const std::vector<Ceiling> one = peak(1, 117.2);
  EXPECT_EQ(why_inconsistent(one, peak(2, 117.3), 2),
            "the FMA peak is 117.3 GFLOP/s on 2 threads and 117.2 on one");
  EXPECT_EQ(why_inconsistent(one, peak(2, 234), 2), "");
  EXPECT_EQ(why_inconsistent(one, peak(16, 16 * 117.2 * 0.65), 16), "") << "clocks fall";
  EXPECT_EQ(why_inconsistent(one, peak(2, 117.3), 1), "") << "the two share a core";
  EXPECT_NE(why_inconsistent(one, peak(2, 400), 2), "") << "that of one thread is too low";
  EXPECT_EQ(why_inconsistent({}, peak(2, 117), 2), "");
  EXPECT_EQ(why_inconsistent(one, {}, 2), "");
}

}  // namespace
}  // namespace stepladder
