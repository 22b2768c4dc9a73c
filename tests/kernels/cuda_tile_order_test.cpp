// Rasterization, split-K slices and swizzled addresses of the tensor-core rungs, on the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "harness/problem/random.hpp"
#include "kernels/common/cuda/swizzle.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/matmul/cuda/split_k.hpp"
#include "kernels/matmul/cuda/wgmma/raster.hpp"

namespace stepladder {
namespace {

TEST(Raster, HasEveryTileOnce) {
  Random random(11);
  for (int round = 0; round < 200; ++round) {
    const matmul::Raster raster{static_cast<unsigned>(random.integer(1, 70)),
                                static_cast<unsigned>(random.integer(1, 70))};
    std::set<std::pair<unsigned, unsigned>> seen;
    for (unsigned tile = 0; tile < raster.count(); ++tile) {
      const auto [row, column] = raster.position(tile);
      ASSERT_LT(row, raster.down);
      ASSERT_LT(column, raster.across);
      seen.emplace(row, column);
    }
    ASSERT_EQ(seen.size(), raster.count()) << raster.down << " x " << raster.across;
  }
}

// In row-major order, the 132 concurrent tiles of an H200 would have 3 rows and all 64 columns.
TEST(Raster, ConcurrentTilesShareRowsAndColumns) {
  const matmul::Raster raster{64, 64};
  for (unsigned first = 0; first + 132 <= raster.count(); first += 132) {
    std::set<unsigned> rows, columns;
    for (unsigned tile = first; tile < first + 132; ++tile) {
      rows.insert(raster.position(tile).row);
      columns.insert(raster.position(tile).column);
    }
    const bool is_in_one_band = first / (16 * 64) == (first + 131) / (16 * 64);
    if (is_in_one_band) {
      EXPECT_LE(rows.size() + columns.size(), 16U + 10U) << first;
    }
  }
}

TEST(SplitK, PutsEveryStepIntoOneSliceAndBalancesThem) {
  Random random(12);
  for (int round = 0; round < 500; ++round) {
    const matmul::Problem p{.m = 1, .n = 1, .k = random.integer(1, 5000)};
    const auto tiles = static_cast<unsigned>(random.integer(1, 200));
    const int slices = matmul::slices_for(p, 16, tiles, 132);
    ASSERT_GE(slices, 1);
    ASSERT_LE(slices, std::max(132 / static_cast<int>(tiles), 1));
    const matmul::SplitK split = matmul::split_k(slices, p, 16);
    int next = 0, least = split.steps_of(0), most = least;
    for (int slice = 0; slice < slices; ++slice) {
      ASSERT_EQ(split.first_step(slice), next) << slice << " of " << slices << ", k " << p.k;
      next += split.steps_of(slice);
      least = std::min(least, split.steps_of(slice));
      most = std::max(most, split.steps_of(slice));
    }
    ASSERT_EQ(next, ceil_div(p.k, 16));
    ASSERT_LE(most - least, 1);
    if (slices > 1) {
      ASSERT_GE(least, 2);
    }
  }
}

// PTX ISA, "Swizzling modes": address bits 4 to 6 are XORed with bits 7 to 9.
TEST(Swizzle, FollowsTheAddressBits) {
  for (int row = 0; row < 64; ++row)
    for (int column = 0; column < swizzled_row; ++column) {
      const unsigned address = static_cast<unsigned>(row) * 128 + static_cast<unsigned>(column) * 4;
      const unsigned expected = address ^ (address >> 7 & 7) << 4;
      ASSERT_EQ(static_cast<unsigned>(swizzled(row, column)) * 4, expected);
    }
}

// A fragment of wgmma: 8 rows and 4 columns at once, from 32 different banks.
TEST(Swizzle, AFragmentOfAKContiguousMatrixHasNoBankConflicts) {
  for (int row = 0; row < 128; row += 8)
    for (int column = 0; column < swizzled_row; column += 4) {
      std::set<int> banks;
      for (int lane = 0; lane < 32; ++lane)
        banks.insert(swizzled(row + lane / 4, column + lane % 4) % 32);
      ASSERT_EQ(banks.size(), 32U);
    }
}

TEST(Swizzle, ADescriptorHoldsStartStrideAndMode) {
  const std::uint64_t matrix = wgmma_descriptor(0x2c400);
  EXPECT_EQ(matrix & 0x3fff, 0x2c40U);           // in units of 16 bytes
  EXPECT_EQ(matrix >> 32 & 0x3fff, 1024U / 16);  // from 8 rows to the next 8
  EXPECT_EQ(matrix >> 62, 1U);                   // 128 bytes
  EXPECT_EQ(advance_descriptor(matrix, 128, 8), wgmma_descriptor(0x2c400 + 128 * 128) + 2);
}

}  // namespace
}  // namespace stepladder
