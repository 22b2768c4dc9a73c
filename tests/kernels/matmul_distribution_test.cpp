// Every element of A, B and C has exactly one rank, and the blocks have nearly equal sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "harness/problem/random.hpp"
#include "kernels/matmul/distribution.hpp"

namespace stepladder::matmul {
namespace {

std::int64_t size(Range range) { return range.end - range.begin; }

// How many of the ranks have each element of a stored matrix of rows x columns.
void expect_one_owner(const Problem& p, bool grid, Block Blocks::*of, std::int64_t rows,
                      std::int64_t columns) {
  std::vector<int> owners(static_cast<std::size_t>(rows * columns));
  for (int rank = 0; rank < p.ranks; ++rank) {
    const Block block = (grid ? blocks_by_grid(p, rank) : blocks_by_rows(p, rank)).*of;
    ASSERT_LE(block.rows.end, rows);
    ASSERT_LE(block.columns.end, columns);
    for (std::int64_t i = block.rows.begin; i < block.rows.end; ++i)
      for (std::int64_t j = block.columns.begin; j < block.columns.end; ++j)
        ++owners[static_cast<std::size_t>(i * columns + j)];
  }
  EXPECT_TRUE(std::ranges::all_of(owners, [](int count) { return count == 1; }));
}

TEST(MatmulDistribution, EveryElementHasOneOwner) {
  Random random(1, "distribution");
  for (int i = 0; i < 400; ++i) {
    const Problem p{.m = random.integer(1, 40),
                    .n = random.integer(1, 40),
                    .k = random.integer(1, 40),
                    .transpose_a = random.coin(),
                    .transpose_b = random.coin(),
                    .ranks = static_cast<int>(random.integer(1, 12))};
    SCOPED_TRACE(shape(p) + " on ranks: " + std::to_string(p.ranks));
    for (const bool grid : {false, true}) {
      expect_one_owner(p, grid, &Blocks::a, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k);
      expect_one_owner(p, grid, &Blocks::b, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n);
      expect_one_owner(p, grid, &Blocks::c, p.m, p.n);
    }
  }
}

TEST(MatmulDistribution, TheGridIsTheMostSquareOneAlongTheShapeOfC) {
  const auto grid = [](int ranks, std::int64_t m, std::int64_t n) {
    const GridShape shape = grid_shape({.m = m, .n = n, .k = 1, .ranks = ranks});
    return std::vector<int>{shape.rows, shape.columns};
  };
  EXPECT_EQ(grid(1, 5, 5), (std::vector{1, 1}));
  EXPECT_EQ(grid(2, 9, 5), (std::vector{2, 1}));
  EXPECT_EQ(grid(2, 5, 9), (std::vector{1, 2}));
  EXPECT_EQ(grid(4, 5, 9), (std::vector{2, 2}));
  EXPECT_EQ(grid(6, 9, 5), (std::vector{3, 2}));
  EXPECT_EQ(grid(7, 5, 9), (std::vector{1, 7}));
  EXPECT_EQ(grid(12, 5, 9), (std::vector{3, 4}));
}

TEST(MatmulDistribution, BlocksOfCDifferByOneRowAndColumnAtMost) {
  const Problem p{.m = 101, .n = 103, .k = 7, .ranks = 6};  // 2 x 3
  for (int rank = 0; rank < p.ranks; ++rank) {
    const Block c = blocks_by_grid(p, rank).c, strip = blocks_by_rows(p, rank).c;
    EXPECT_NEAR(static_cast<double>(size(c.rows)), 101 / 2.0, 0.5);
    EXPECT_NEAR(static_cast<double>(size(c.columns)), 103 / 3.0, 0.9);
    EXPECT_NEAR(static_cast<double>(size(strip.rows)), 101 / 6.0, 0.9);
    EXPECT_EQ(size(strip.columns), 103);
  }
}

}  // namespace
}  // namespace stepladder::matmul
