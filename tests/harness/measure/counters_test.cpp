// Counters of a repetition are divided by its iterations.
#include "harness/measure/counters.hpp"

#include <gtest/gtest.h>

namespace stepladder {
namespace {

TEST(CounterValues, AreZeroAtFirst) {
  const CounterValues values;
  EXPECT_EQ(values.cycles, 0);
  EXPECT_EQ(values.instructions, 0);
  EXPECT_EQ(values.cache_misses, 0);
}

TEST(CounterValues, EachIsDivided) {
  CounterValues values{.cycles = 30, .instructions = 20, .cache_misses = 5};
  values /= 10;
  EXPECT_EQ(values.cycles, 3);
  EXPECT_EQ(values.instructions, 2);
  EXPECT_EQ(values.cache_misses, 0.5);
}

}  // namespace
}  // namespace stepladder
