// Who has which part of a vector at each step of a ring: sums are complete, and every rank ends with all.
#include "kernels/all_reduce/ring_schedule.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "harness/problem/random.hpp"

namespace stepladder::all_reduce {
namespace {

TEST(RingParts, TileTheVectorInAlmostEqualParts) {
  Random random(7);
  for (int round = 0; round < 2000; ++round) {
    const Part whole{random.integer(0, 50),
                     random.integer(0, 3) == 0 ? random.integer(0, 9) : random.integer(0, 5000)};
    const auto parts = static_cast<int>(random.integer(1, 17));
    const std::int64_t grain = random.integer(1, 8);
    std::int64_t next = whole.first, least = whole.count, most = 0;
    for (int i = 0; i < parts; ++i) {
      const Part part = part_of(whole, parts, i, grain);
      ASSERT_EQ(part.first, next);
      ASSERT_GE(part.count, 0);
      if (part.count > 0) {
        ASSERT_EQ((part.first - whole.first) % grain, 0);
      }
      next += part.count;
      least = std::min(least, part.count);
      most = std::max(most, part.count);
      for (const int turn : {-2, -1, 1})
        ASSERT_EQ(part_of(whole, parts, i + turn * parts, grain).first, part.first);
    }
    ASSERT_EQ(next, whole.first + whole.count);
    ASSERT_LE(most - least, 2 * grain - 1) << "one grain, and a last one that is not whole";
  }
}

TEST(RingParts, EveryRankEndsWithTheSumOfAll) {
  Random random(8);
  for (int round = 0; round < 300; ++round) {
    const auto ranks = static_cast<int>(random.integer(1, 9));
    const Part whole{0, random.integer(0, 100)};
    const auto count = static_cast<std::size_t>(whole.count);
    // Rank r's number has bit r alone: a sum shows who took part, and how often.
    std::vector<std::vector<std::int64_t>> sum(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; ++r) sum[r].assign(count, std::int64_t{1} << (4 * r));
    const auto input = sum;
    const auto each = [&](int rank, int index, const auto& visit) {
      const Part part = part_of(whole, ranks, index);
      const int previous = (rank + ranks - 1) % ranks;
      for (std::int64_t i = part.first; i < part.first + part.count; ++i)
        visit(static_cast<std::size_t>(previous), static_cast<std::size_t>(rank),
              static_cast<std::size_t>(i));
    };
    for (int step = 0; step < ranks - 1; ++step)
      for (int rank = 0; rank < ranks; ++rank)
        each(rank, part_to_sum(rank, step), [&](auto previous, auto own, auto i) {
          sum[own][i] = sum[previous][i] + input[own][i];
        });
    for (int step = 0; step < ranks - 1; ++step)
      for (int rank = 0; rank < ranks; ++rank)
        each(rank, part_to_gather(rank, step),
             [&](auto previous, auto own, auto i) { sum[own][i] = sum[previous][i]; });
    std::int64_t all = 0;
    for (int r = 0; r < ranks; ++r) all += std::int64_t{1} << (4 * r);
    for (int r = 0; r < ranks; ++r)
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(sum[r][i], all) << r << " of " << ranks;
  }
}

}  // namespace
}  // namespace stepladder::all_reduce
