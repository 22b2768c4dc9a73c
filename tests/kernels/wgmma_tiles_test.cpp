// How convolution's wgmma rungs cut a result into tiles and a sum into parts.
#include "kernels/convolution/cuda/wgmma/tiles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "harness/problem/random.hpp"
#include "tests/simt/emulated_device.hpp"
#include "tests/wgmma_problems.hpp"

namespace stepladder::convolution {
namespace {

WgmmaTiles random_tiles(Random& random) {
  const auto size = [&] { return static_cast<int>(random.integer(1, 7)); };
  return {size(), size(), size(), size(), static_cast<int>(random.integer(0, 40))};
}

TEST(WgmmaTiles, EveryStepOfEveryTileIsTakenOnce) {
  Random random(11);
  for (int round = 0; round < 200; ++round) {
    const WgmmaTiles tiles = random_tiles(random);
    const int results = tiles.rows * tiles.columns * tiles.groups;
    std::vector<int> taken(std::size_t(results) * std::size_t(tiles.steps));
    for (unsigned tile = 0; tile < tiles.count(); ++tile) {
      const WgmmaTiles::Place p = tiles.place(tile);
      ASSERT_TRUE(0 <= p.row && p.row < tiles.rows && 0 <= p.column && p.column < tiles.columns);
      ASSERT_TRUE(0 <= p.group && p.group < tiles.groups && 0 <= p.part && p.part < tiles.parts);
      const int result = (p.group * tiles.rows + p.row) * tiles.columns + p.column;
      for (int step = p.first_step; step < p.last_step; ++step)
        ++taken.at(std::size_t(result) * std::size_t(tiles.steps) + std::size_t(step));
    }
    for (const int times : taken) ASSERT_EQ(times, 1);
  }
}

// Found by trying all: the fewest parts of those that take the least time, each with a step at least and
// all tiles within four rounds.
int best_parts(WgmmaTiles tiles, int columns, int blocks) {
  std::vector<std::int64_t> times;
  for (tiles.parts = 1; tiles.parts <= std::max(1, tiles.steps); ++tiles.parts)
    if (tiles.parts == 1 || tiles.count() <= 4U * static_cast<unsigned>(blocks))
      times.push_back(time(tiles, columns, blocks));
  return static_cast<int>(std::min_element(times.begin(), times.end()) - times.begin()) + 1;
}

TEST(WgmmaTiles, ASumIsSplitIntoThePartsThatTakeTheLeastTime) {
  Random random(12);
  std::set<int> found;
  for (int round = 0; round < 2000; ++round) {
    WgmmaTiles whole = random_tiles(random);
    whole.parts = 1;
    whole.steps = static_cast<int>(random.integer(0, 300));
    const auto blocks = static_cast<int>(random.integer(1, 150));
    const int parts = split(whole, 128, blocks).parts;
    ASSERT_EQ(parts, best_parts(whole, 128, blocks))
        << whole.count() << " tiles, " << whole.steps << " steps, " << blocks << " blocks";
    found.insert(parts);
  }
  EXPECT_GT(found.size(), 20U);
  // A first layer's dw is one tile: it must not leave a GPU to one multiprocessor.
  EXPECT_GT(split({1, 1, 1, 1, 1568}, 64, 132).parts, 60);
}

TEST(WgmmaTiles, TheWidthIsTheOneThatTakesTheLeastTime) {
  constexpr int widths[] = {256, 128, 64};
  Random random(13);
  std::set<int> found;
  for (int round = 0; round < 500; ++round) {
    const WgmmaSize size{random.integer(1, 5000), static_cast<int>(random.integer(1, 600)),
                         static_cast<int>(random.integer(1, 3)), random.integer(1, 3000)};
    const auto blocks = static_cast<int>(random.integer(1, 150));
    const bool in_parts = random.coin();
    const WgmmaCut chosen = cut(size, in_parts, widths, blocks);
    found.insert(chosen.columns);
    const auto [rows, columns, groups, parts, steps] = chosen.tiles;
    ASSERT_TRUE(128 * (rows - 1) < size.rows && size.rows <= 128 * rows);
    ASSERT_TRUE(chosen.columns * (columns - 1) < size.columns &&
                size.columns <= chosen.columns * columns);
    ASSERT_TRUE(32 * (steps - 1) < size.depth && size.depth <= 32 * steps);
    ASSERT_EQ(groups, size.groups);
    if (!in_parts) {
      ASSERT_EQ(parts, 1);
    }
    for (const int width : widths) {
      WgmmaTiles other{rows, (size.columns + width - 1) / width, groups, 1, steps};
      if (in_parts) other.parts = best_parts(other, width, blocks);
      ASSERT_LE(time(chosen.tiles, chosen.columns, blocks), time(other, width, blocks)) << width;
    }
  }
  EXPECT_EQ(found.size(), 3U);
}

// The widths that the rungs have: tf32_wgmma's, tf32x3_wgmma's.
const std::vector<int> widths_of_rungs[] = {{256, 128, 64}, {128, 64}};

// On the emulated device.
WgmmaCut cut_of(Problem p, const std::vector<int>& widths) {
  const bool of_weights = p.direction == Direction::backward_weights;
  if (of_weights) p.direction = Direction::forward;
  const Correlation c = correlations(p).front();
  return cut(of_weights ? term_product_size(c) : pixel_product_size(c), true, widths,
             simt::multiprocessors);
}

TEST(WgmmaTiles, TheEmulatedProblemsOfManyTilesHaveTilesOfEveryWidth) {
  for (const std::vector<int>& widths : widths_of_rungs)
    for (const Direction direction :
         {Direction::forward, Direction::backward_data, Direction::backward_weights}) {
      std::set<int> found;
      for (const Problem& p : problems_of_many_tiles()) {
        if (p.direction != direction) continue;
        const WgmmaCut chosen = cut_of(p, widths);
        found.insert(chosen.columns);
        EXPECT_GT(chosen.tiles.count(), simt::multiprocessors)
            << "no block takes a second tile of " << shape(p);
      }
      EXPECT_EQ(found, std::set<int>(widths.begin(), widths.end())) << static_cast<int>(direction);
    }
}

TEST(WgmmaTiles, TheEmulatedProblemsOfLongSumsAreCutIntoParts) {
  for (const std::vector<int>& widths : widths_of_rungs)
    for (const Problem& p : problems_of_long_sums())
      EXPECT_GT(cut_of(p, widths).tiles.parts, 1) << direction(p) << " " << shape(p);
}

}  // namespace
}  // namespace stepladder::convolution
