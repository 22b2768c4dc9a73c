// The ring schedule: chunks tile the vector, and every rank ends with the complete sum.
#include "kernels/all_reduce/ring_schedule.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "harness/problem/random.hpp"

namespace stepladder::all_reduce {
namespace {

TEST(RingSchedule, ChunksTileTheVectorAndAreOfNearlyEqualSize) {
  Random random(7);
  for (int round = 0; round < 2000; ++round) {
    const Chunk whole{random.integer(0, 50),
                      random.integer(0, 3) == 0 ? random.integer(0, 9) : random.integer(0, 5000)};
    const auto chunks = static_cast<int>(random.integer(1, 17));
    const std::int64_t granule = random.integer(1, 8);
    std::int64_t next = whole.first, least = whole.count, most = 0;
    for (int i = 0; i < chunks; ++i) {
      const Chunk chunk = chunk_of(whole, chunks, i, granule);
      ASSERT_EQ(chunk.first, next);
      ASSERT_GE(chunk.count, 0);
      if (chunk.count > 0) {
        ASSERT_EQ((chunk.first - whole.first) % granule, 0);
      }
      next += chunk.count;
      least = std::min(least, chunk.count);
      most = std::max(most, chunk.count);
      for (const int turn : {-2, -1, 1})
        ASSERT_EQ(chunk_of(whole, chunks, i + turn * chunks, granule).first, chunk.first);
    }
    ASSERT_EQ(next, whole.first + whole.count);
    ASSERT_LE(most - least, 2 * granule - 1) << "one granule, and an incomplete last one";
  }
}

TEST(RingSchedule, EveryRankEndsWithTheSumOfAllRanks) {
  Random random(8);
  for (int round = 0; round < 300; ++round) {
    const auto ranks = static_cast<int>(random.integer(1, 9));
    const Chunk whole{0, random.integer(0, 100)};
    const auto count = static_cast<std::size_t>(whole.count);
    // Rank r contributes 16^r: the digits of a sum tell how often each rank was added.
    std::vector<std::vector<std::int64_t>> sum(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; ++r) sum[r].assign(count, std::int64_t{1} << (4 * r));
    const auto input = sum;
    const auto each = [&](int rank, int index, const auto& visit) {
      const Chunk chunk = chunk_of(whole, ranks, index);
      const int previous = (rank + ranks - 1) % ranks;
      for (std::int64_t i = chunk.first; i < chunk.first + chunk.count; ++i)
        visit(static_cast<std::size_t>(previous), static_cast<std::size_t>(rank),
              static_cast<std::size_t>(i));
    };
    for (int step = 0; step < ranks - 1; ++step)
      for (int rank = 0; rank < ranks; ++rank)
        each(rank, reduce_scatter_chunk(rank, step), [&](auto previous, auto own, auto i) {
          sum[own][i] = sum[previous][i] + input[own][i];
        });
    for (int step = 0; step < ranks - 1; ++step)
      for (int rank = 0; rank < ranks; ++rank)
        each(rank, all_gather_chunk(rank, step),
             [&](auto previous, auto own, auto i) { sum[own][i] = sum[previous][i]; });
    std::int64_t all = 0;
    for (int r = 0; r < ranks; ++r) all += std::int64_t{1} << (4 * r);
    for (int r = 0; r < ranks; ++r)
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(sum[r][i], all) << r << " of " << ranks;
  }
}

}  // namespace
}  // namespace stepladder::all_reduce
