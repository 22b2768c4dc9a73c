#include "harness/problem/within_bounds.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace stepladder {
namespace {

// More than a block of the comparison, and no multiple of it.
constexpr std::size_t count = 2500;

struct Results {
  std::vector<float> got = std::vector<float>(count, 3), before = std::vector<float>(count, 1),
                     bound = std::vector<float>(count, 0.5F);
  std::vector<double> value = std::vector<double>(count, 3);
  double error_ratio = 0;

  bool are_within(bool changes, bool bounded, double factor = 1, double more = 0) {
    return all_within({.got = got.data(),
                       .before = changes ? before.data() : nullptr,
                       .value = value,
                       .bound = bounded ? bound.data() : nullptr,
                       .factor = factor,
                       .more = more},
                      error_ratio);
  }
};

TEST(WithinBounds, SeesEachElement) {
  for (const std::size_t i : {0U, 1U, 1023U, 1024U, 2047U, 2498U, 2499U})
    for (const float wrong : {3.75F, 2.25F, std::numeric_limits<float>::quiet_NaN(),
                              std::numeric_limits<float>::infinity()}) {
      Results results;
      results.got[i] = wrong;
      EXPECT_FALSE(results.are_within(false, true)) << i << ' ' << wrong;
      EXPECT_EQ(results.error_ratio, 0);
    }
}

TEST(WithinBounds, KeepsTheLargestRatio) {
  Results results;
  EXPECT_TRUE(results.are_within(false, true));
  EXPECT_EQ(results.error_ratio, 0);
  results.got[5] = 3.25F;
  results.got[2000] = 2.625F;
  EXPECT_TRUE(results.are_within(false, true));
  EXPECT_EQ(results.error_ratio, 0.75);
  results.got[2000] = 3;
  EXPECT_TRUE(results.are_within(false, true));
  EXPECT_EQ(results.error_ratio, 0.75);
}

TEST(WithinBounds, ScalesTheBoundsAndAddsToThem) {
  Results results;
  results.got[2400] = 4;
  EXPECT_FALSE(results.are_within(false, true, 1.5));
  EXPECT_FALSE(results.are_within(false, false, 1.5, 0.75));
  EXPECT_TRUE(results.are_within(false, true, 1.5, 0.5));
  EXPECT_EQ(results.error_ratio, 0.8);
}

TEST(WithinBounds, SubtractsTheFormerContent) {
  Results results;
  EXPECT_FALSE(results.are_within(true, true));
  results.value.assign(count, 2);
  EXPECT_TRUE(results.are_within(true, true));
  EXPECT_TRUE(results.are_within(true, false));
}

TEST(WithinBounds, AllowsNothingWithoutABound) {
  Results results;
  EXPECT_TRUE(results.are_within(false, false));
  results.got[1] = 3.0000002F;
  EXPECT_FALSE(results.are_within(false, false));
}

}  // namespace
}  // namespace stepladder
