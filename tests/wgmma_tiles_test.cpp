// How convolution's wgmma rungs cut a result into tiles and a sum into parts.
#include "kernels/convolution/wgmma_tiles.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "harness/random.hpp"

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

TEST(WgmmaTiles, ASumIsSplitWhereThatSavesTime) {
  Random random(12);
  int were_split = 0;
  for (int round = 0; round < 500; ++round) {
    WgmmaTiles whole = random_tiles(random);
    whole.parts = 1;
    const auto blocks = static_cast<int>(random.integer(1, 150));
    const WgmmaTiles cut = split(whole, 128, blocks);
    were_split += cut.parts > 1;
    ASSERT_LE(cut.parts, std::max(1, cut.steps)) << "a part without a step";
    if (cut.parts > 1) {
      ASSERT_LT(time(cut, 128, blocks), time(whole, 128, blocks));
    }
    if (whole.count() >= static_cast<unsigned>(4 * blocks)) {
      ASSERT_EQ(cut.parts, 1);
    }
  }
  EXPECT_GT(were_split, 0);
  // A first layer's dw is one tile: it must not leave a GPU to one multiprocessor.
  EXPECT_GT(split({1, 1, 1, 1, 1568}, 64, 132).parts, 60);
}

}  // namespace
}  // namespace stepladder::convolution
