// What the packed rungs share: block sizes, the packing of panels, and the product of packed
// blocks. The loops around it are in packed.cpp and packed_openmp.cpp. A template on Arch, because
// its files are built once per ISA.
//
//   a block  [block_rows, depth]   packed as panels [depth, MR], about 240 KiB: second-level cache
//   b strip  [depth, 48 or 64]     packed as panels [depth, NR] of 48, 16 or 8 KiB: first level
//   c tile   [MR, NR]              registers (kernels/common/gemm_tile.hpp)
//
// Packing makes the tile read both operands in order, whatever their transposes and strides: one
// line after the other, no two of them competing for the same set of the cache, few pages. It costs
// one pass over the operand, so it is left out where the tile would read the packed copy only once
// or twice: A when C is narrow, B when C has a single row of tiles.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/common/aligned.hpp"
#include "kernels/common/gemm_tile.hpp"
#include "kernels/common/partial_vector.hpp"
#include "kernels/matmul/matmul.hpp"
#include "kernels/matmul/range.hpp"
#include "kernels/matmul/transpose.hpp"

namespace stepladder::matmul {

template <class Arch>
class PackedProduct {
 public:
  using Tile = GemmTile<Arch>;
  using Vector = typename Tile::Vector;
  static constexpr std::int64_t tile_rows = Tile::rows;        // MR
  static constexpr std::int64_t tile_columns = Tile::columns;  // NR
  // B is packed some panels at a time, so that narrow tiles too read whole cache lines of it.
  static constexpr std::int64_t strip_columns = Tile::lanes == 16 ? tile_columns : 64;

  // `shares` threads divide the rows of a block between them; it is that much higher.
  explicit PackedProduct(const Problem& problem, int shares = 1)
      : problem_(problem),
        depth_(equal_blocks(problem.k, 256, 1)),
        block_rows_(equal_blocks(problem.m, std::int64_t{240} * shares, tile_rows)),
        packs_a_(problem.n > 2 * tile_columns),
        packs_b_(problem.m > tile_rows || problem.transpose_b) {}

  std::int64_t depth() const { return depth_; }            // KC: of k at a time
  std::int64_t block_rows() const { return block_rows_; }  // MC: rows of A at a time
  bool packs_a() const { return packs_a_; }
  std::int64_t block_size() const { return packs_a_ ? block_rows_ * depth_ : 0; }  // floats
  std::int64_t strip_size() const { return depth_ * strip_columns; }               // floats

  // a_block: rows `rows` and depths `depths` of op(A), as panels [depth, MR] one after the other.
  void pack_a(const float* a, Range rows, Range depths, float* a_block) const {
    const std::int64_t depth = depths.end - depths.begin;
    for (std::int64_t i = rows.begin; i < rows.end; i += tile_rows, a_block += depth * tile_rows) {
      const std::int64_t height = std::min(tile_rows, rows.end - i);
      if (problem_.transpose_a)
        for (std::int64_t l = 0; l < depth; ++l)
          copy_column(a + (depths.begin + l) * problem_.m + i, height, a_block + l * tile_rows);
      else
        transpose(height, depth, a + i * problem_.k + depths.begin, problem_.k, a_block, tile_rows);
    }
  }

  // c[rows, columns] (+)= op(A)[rows, depths] · op(B)[depths, columns], where a_block holds A's
  // part if packs_a(), and b_strip is workspace of strip_size(). The first depths overwrite C.
  void multiply(const Operands& o, const float* a_block, Range rows, Range columns, Range depths,
                float* b_strip) const {
    const Problem& p = problem_;
    const std::int64_t depth = depths.end - depths.begin;
    for (std::int64_t strip = columns.begin; strip < columns.end; strip += strip_columns) {
      const std::int64_t end = std::min(strip + strip_columns, columns.end);
      // The tile reads whole vectors of B.
      const bool packed = packs_b_ || (end - strip) % Tile::lanes != 0;
      if (packed) pack_b(o.b, {strip, end}, depths, b_strip);
      for (std::int64_t j = strip; j < end; j += tile_columns) {
        const float* b = packed ? b_strip + (j - strip) * depth : o.b + depths.begin * p.n + j;
        multiply_column(o, a_block, rows, depths, b, packed ? tile_columns : p.n, j,
                        std::min(tile_columns, end - j));
      }
    }
  }

 private:
  // The size of blocks of at most `most` (rounded up to `unit`), as equal as can be, that cover
  // `size`.
  static std::int64_t equal_blocks(std::int64_t size, std::int64_t most, std::int64_t unit) {
    const std::int64_t blocks = (size + most - 1) / most;
    return ((size + blocks - 1) / blocks + unit - 1) / unit * unit;
  }

  // One column of tiles: c[rows, j … j + width), b: [depth, width] in steps of b_step.
  void multiply_column(const Operands& o, const float* a_block, Range rows, Range depths,
                       const float* b, std::int64_t b_step, std::int64_t j,
                       std::int64_t width) const {
    const Problem& p = problem_;
    const std::int64_t depth = depths.end - depths.begin;
    for (std::int64_t i = rows.begin; i < rows.end; i += tile_rows) {
      const float* a = a_block + (i - rows.begin) * depth;  // a panel, [depth, MR]
      std::int64_t a_row = 1, a_step = tile_rows;
      if (!packs_a_) {
        a = p.transpose_a ? o.a + depths.begin * p.m + i : o.a + i * p.k + depths.begin;
        a_row = p.transpose_a ? 1 : p.k;
        a_step = p.transpose_a ? p.m : 1;
      }
      Tile::multiply_strided(depth, a, a_row, a_step, b, b_step, o.c + i * p.n + j, p.n,
                             std::min(tile_rows, rows.end - i), width, depths.begin > 0);
    }
  }

  // b_strip: columns `columns` and depths `depths` of op(B), as panels [depth, NR] one after the
  // other; defined up to the next whole vector.
  void pack_b(const float* b, Range columns, Range depths, float* b_strip) const {
    const std::int64_t depth = depths.end - depths.begin, width = columns.end - columns.begin;
    const std::int64_t panel = depth * tile_columns;  // floats
    if (problem_.transpose_b) {
      if (width % Tile::lanes != 0)
        std::fill_n(b_strip + width / tile_columns * panel, panel, 0.0f);
      for (std::int64_t j = 0; j < width; j += tile_columns)
        transpose(std::min(tile_columns, width - j), depth,
                  b + (columns.begin + j) * problem_.k + depths.begin, problem_.k,
                  b_strip + j * depth, tile_columns);
      return;
    }
    const float* row = b + depths.begin * problem_.n + columns.begin;
    for (std::int64_t l = 0; l < depth; ++l, row += problem_.n, b_strip += tile_columns) {
      if (width == strip_columns) {
        copy_row(row, b_strip, panel, std::make_index_sequence<strip_columns / Tile::lanes>{});
        continue;
      }
      for (std::int64_t j = 0; j < width; j += Tile::lanes)
        load_partial<Arch>(row + j, std::min(Tile::lanes, width - j))
            .store_aligned(b_strip + j / tile_columns * panel + j % tile_columns);
    }
  }

  static void copy_column(const float* a, std::int64_t height, float* panel) {
    if (height == tile_rows)
      std::copy_n(a, tile_rows, panel);  // of constant size: two or three instructions, no call
    else
      std::copy_n(a, height, panel);
  }

  template <std::size_t... V>
  static void copy_row(const float* row, float* b_strip, std::int64_t panel,
                       std::index_sequence<V...>) {
    (Vector::load_unaligned(row + V * Tile::lanes)
         .store_aligned(b_strip + V / Tile::vectors * panel + V % Tile::vectors * Tile::lanes),
     ...);
  }

  Problem problem_;
  std::int64_t depth_, block_rows_;
  bool packs_a_, packs_b_;
};

}  // namespace stepladder::matmul
