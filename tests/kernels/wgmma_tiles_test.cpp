// How convolution's wgmma rungs choose tiles and split-K slices.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "harness/problem/random.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cuda/wgmma/tiles.hpp"
#include "tests/simt/emulated_device.hpp"
#include "tests/wgmma_problems.hpp"

namespace stepladder::convolution {
namespace {

WgmmaTiles random_tiles(Random& random) {
  const auto size = [&] { return static_cast<int>(random.integer(1, 7)); };
  return {size(), size(), size(), size(), static_cast<int>(random.integer(0, 40))};
}

TEST(WgmmaTiles, EveryStepOfEveryTileOccursOnce) {
  Random random(11);
  for (int round = 0; round < 200; ++round) {
    const WgmmaTiles tiles = random_tiles(random);
    const int results = tiles.rows * tiles.columns * tiles.groups;
    std::vector<int> count(std::size_t(results) * std::size_t(tiles.steps));
    for (unsigned tile = 0; tile < tiles.count(); ++tile) {
      const WgmmaTiles::Position p = tiles.position(tile);
      ASSERT_TRUE(0 <= p.row && p.row < tiles.rows && 0 <= p.column && p.column < tiles.columns);
      ASSERT_TRUE(0 <= p.group && p.group < tiles.groups && 0 <= p.split && p.split < tiles.splits);
      const int result = (p.group * tiles.rows + p.row) * tiles.columns + p.column;
      for (int step = p.first_step; step < p.last_step; ++step)
        ++count.at(std::size_t(result) * std::size_t(tiles.steps) + std::size_t(step));
    }
    for (const int occurrences : count) ASSERT_EQ(occurrences, 1);
  }
}

// By exhaustive search: the smallest number of slices of least estimated time, where each slice has
// at least one step and all tiles fit into four waves.
int best_splits(WgmmaTiles tiles, int columns, int blocks) {
  std::vector<std::int64_t> times;
  for (tiles.splits = 1; tiles.splits <= std::max(1, tiles.steps); ++tiles.splits)
    if (tiles.splits == 1 || tiles.count() <= 4U * static_cast<unsigned>(blocks))
      times.push_back(estimated_time(tiles, columns, blocks));
  return static_cast<int>(std::ranges::min_element(times) - times.begin()) + 1;
}

TEST(WgmmaTiles, SplitsHaveTheLeastEstimatedTime) {
  Random random(12);
  std::set<int> found;
  for (int round = 0; round < 2000; ++round) {
    WgmmaTiles whole = random_tiles(random);
    whole.splits = 1;
    whole.steps = static_cast<int>(random.integer(0, 300));
    const auto blocks = static_cast<int>(random.integer(1, 150));
    const int splits = choose_splits(whole, 128, blocks).splits;
    ASSERT_EQ(splits, best_splits(whole, 128, blocks))
        << whole.count() << " tiles, " << whole.steps << " steps, " << blocks << " blocks";
    found.insert(splits);
  }
  EXPECT_GT(found.size(), 20U);
  // dw of a first layer is one tile: it must not run on one multiprocessor only.
  EXPECT_GT(choose_splits({1, 1, 1, 1, 1568}, 64, 132).splits, 60);
}

TEST(WgmmaTiles, TheWidthHasTheLeastEstimatedTime) {
  constexpr int widths[] = {256, 128, 64};
  Random random(13);
  std::set<int> found;
  for (int round = 0; round < 500; ++round) {
    const GemmSize size{random.integer(1, 5000), static_cast<int>(random.integer(1, 600)),
                        static_cast<int>(random.integer(1, 3)), random.integer(1, 3000)};
    const auto blocks = static_cast<int>(random.integer(1, 150));
    const bool may_split = random.coin();
    const WgmmaTiling chosen = choose_tiling(size, may_split, widths, blocks);
    found.insert(chosen.columns);
    const auto [rows, columns, groups, splits, steps] = chosen.tiles;
    ASSERT_TRUE(128 * (rows - 1) < size.m && size.m <= 128 * rows);
    ASSERT_TRUE(chosen.columns * (columns - 1) < size.n && size.n <= chosen.columns * columns);
    ASSERT_TRUE(32 * (steps - 1) < size.k && size.k <= 32 * steps);
    ASSERT_EQ(groups, size.groups);
    if (!may_split) {
      ASSERT_EQ(splits, 1);
    }
    for (const int width : widths) {
      WgmmaTiles other{rows, ceil_div(size.n, width), groups, 1, steps};
      if (may_split) other.splits = best_splits(other, width, blocks);
      ASSERT_LE(estimated_time(chosen.tiles, chosen.columns, blocks),
                estimated_time(other, width, blocks))
          << width;
    }
  }
  EXPECT_EQ(found.size(), 3U);
}

// Tile widths of tf32_wgmma and of tf32x3_wgmma.
const std::vector<int> widths_of_rungs[] = {{256, 128, 64}, {128, 64}};

// The tiling on the emulated device.
WgmmaTiling emulated_tiling(Problem p, const std::vector<int>& widths) {
  const bool is_backward_weights = p.direction == Direction::backward_weights;
  if (is_backward_weights) p.direction = Direction::forward;
  const CudaCorrelation c = correlations(p).front();
  return choose_tiling(
      is_backward_weights ? backward_weights_gemm_size(c) : correlation_gemm_size(c), true, widths,
      simt::multiprocessors);
}

TEST(WgmmaTiles, EmulatedProblemsOfManyTilesHaveTilesOfEveryWidth) {
  for (const std::vector<int>& widths : widths_of_rungs)
    for (const Direction direction :
         {Direction::forward, Direction::backward_data, Direction::backward_weights}) {
      std::set<int> found;
      for (const Problem& p : problems_of_many_tiles()) {
        if (p.direction != direction) continue;
        const WgmmaTiling chosen = emulated_tiling(p, widths);
        found.insert(chosen.columns);
        EXPECT_GT(chosen.tiles.count(), simt::multiprocessors)
            << "no block computes a second tile of " << shape(p);
      }
      EXPECT_EQ(found, std::set<int>(widths.begin(), widths.end())) << static_cast<int>(direction);
    }
}

TEST(WgmmaTiles, EmulatedProblemsOfLargeKUseSplitK) {
  for (const std::vector<int>& widths : widths_of_rungs)
    for (const Problem& p : problems_of_large_k())
      EXPECT_GT(emulated_tiling(p, widths).tiles.splits, 1) << direction(p) << " " << shape(p);
}

}  // namespace
}  // namespace stepladder::convolution
