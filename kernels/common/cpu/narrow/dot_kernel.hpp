// The micro-kernel on vectors: 8 x 48 sums in registers. A step of a group loads three vectors of
// B and broadcasts a group of each row of A, for 24 instructions that multiply. Four such tiles, 32
// rows, read a panel of B before the next comes into L2.
#pragma once

#include "kernels/common/cpu/narrow/packed_product.hpp"

namespace stepladder::narrow {

struct DotKernel {
  static constexpr std::int64_t row_tiles = 2, column_tiles = 3;
  static constexpr std::int64_t bytes_of_block = 1 << 21;  // from L3 it arrives as fast as needed
  // Of 128 steps: 384 KiB of B, in L2.
  static std::int64_t blocks_of_k(std::int64_t steps) { return ceil_div(steps, std::int64_t{128}); }

  template <class Dot>
  void multiply(const Part& part) const {
    for (std::int64_t row = 0; row < part.rows; row += 8) {
      const std::int64_t rows = std::min(std::int64_t{8}, part.rows - row);
      const auto columns = ceil_div(part.columns, tile_side);
      if (rows > 4)
        with_columns<Dot, 8>(part, row, rows, columns);
      else
        with_columns<Dot, 4>(part, row, rows, columns);
    }
  }

 private:
  template <class Dot, int height>
  static void with_columns(const Part& part, std::int64_t row, std::int64_t rows,
                           std::int64_t columns) {
    if (columns == 3)
      tile<Dot, height, 3>(part, row, rows);
    else if (columns == 2)
      tile<Dot, height, 2>(part, row, rows);
    else
      tile<Dot, height, 1>(part, row, rows);
  }

  template <class Dot, int height, int width>
  STEPLADDER_DOT_TARGET static void tile(const Part& part, std::int64_t row, std::int64_t rows) {
    using Sums = typename Dot::Sums;
    Sums sums[height][width];
    const auto kept = [&](int i, int j) {
      return part.sums + (row / tile_side * column_tiles + j) * tile_bytes +
             (row % tile_side + i) * vector_bytes;
    };
#pragma GCC unroll 8
    for (int i = 0; i < height; ++i)
#pragma GCC unroll 3
      for (int j = 0; j < width; ++j) {
        sums[i][j] = first_sums<Dot>(part, j * tile_side);
        if (!part.is_first) std::memcpy(&sums[i][j], kept(i, j), sizeof(Sums));
      }
    const std::byte* a = part.a + row / tile_side * part.a_row + row % tile_side * vector_bytes;
    const std::byte* b = part.b;
    for (std::int64_t s = 0; s < part.steps; ++s, a += tile_bytes, b += tile_bytes)
      for (std::int64_t g = 0; g < tile_side; ++g) {
        __m512i of_b[width];
#pragma GCC unroll 3
        for (int j = 0; j < width; ++j)
          of_b[j] = _mm512_load_si512(b + j * part.b_column + g * vector_bytes);
#pragma GCC unroll 8
        for (int i = 0; i < height; ++i) {
          int group;
          std::memcpy(&group, a + i * vector_bytes + g * group_bytes, sizeof(group));
          const __m512i of_a = _mm512_set1_epi32(group);
#pragma GCC unroll 3
          for (int j = 0; j < width; ++j) sums[i][j] = Dot::add(sums[i][j], of_a, of_b[j]);
        }
      }
#pragma GCC unroll 8
    for (int i = 0; i < height; ++i)
#pragma GCC unroll 3
      for (int j = 0; j < width; ++j) {
        if (!part.is_last) {
          std::memcpy(kept(i, j), &sums[i][j], sizeof(Sums));
        } else if (i < rows) {
          _mm512_mask_storeu_ps(part.c + (row + i) * part.ldc + j * tile_side,
                                first_lanes(part.columns - j * tile_side),
                                results_of<Dot>(sums[i][j], part, row + i, j * tile_side));
        }
      }
  }
};

}  // namespace stepladder::narrow
