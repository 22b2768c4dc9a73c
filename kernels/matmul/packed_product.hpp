// What the packed rungs share: block sizes, the packing of panels, and the product of packed blocks.
// The loops around it are in packed.cpp and packed_openmp.cpp. A template on Arch, because its files
// are built once per ISA.
//
//   a block  [block_rows, depth]   packed as panels [depth, MR], about 240 KiB: second-level cache
//   b panel  [depth, NR]           packed, 48 KiB for AVX-512, 16 and 8 KiB for AVX2 and SSE: first level
//   c tile   [MR, NR]              registers (kernels/common/gemm_tile.hpp)
//
// Packing makes the tile read both operands in order, whatever their transposes and strides: one line
// after the other, no two of them competing for the same set of the cache, few pages. It costs one
// pass over the operand, so it is left out where the tile would read the packed copy only once or twice:
// A when C is narrow, B when C has a single row of tiles.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/aligned.hpp"
#include "kernels/common/gemm_tile.hpp"
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
  std::int64_t panel_size() const { return depth_ * tile_columns; }                // floats

  // a_block: rows `rows` and depths `depths` of op(A), as panels [depth, MR] one after the other.
  void pack_a(const float* a, Range rows, Range depths, float* a_block) const {
    const std::int64_t depth = depths.end - depths.begin;
    for (std::int64_t i = rows.begin; i < rows.end; i += tile_rows, a_block += depth * tile_rows) {
      const std::int64_t height = std::min(tile_rows, rows.end - i);
      if (problem_.transpose_a)
        copy_rows<tile_rows>(a + depths.begin * problem_.m + i, problem_.m, depth, height, a_block);
      else
        transpose(height, depth, a + i * problem_.k + depths.begin, problem_.k, a_block, tile_rows);
    }
  }

  // c[rows, columns] (+)= op(A)[rows, depths] · op(B)[depths, columns], where a_block holds A's part
  // if packs_a(), and b_panel is workspace of panel_size(). The first depths overwrite C.
  void multiply(const Operands& o, const float* a_block, Range rows, Range columns, Range depths,
                float* b_panel) const {
    const Problem& p = problem_;
    const std::int64_t depth = depths.end - depths.begin;
    for (std::int64_t j = columns.begin; j < columns.end; j += tile_columns) {
      const std::int64_t width = std::min(tile_columns, columns.end - j);
      const float* b = o.b + depths.begin * p.n + j;  // [depth, width]
      std::int64_t b_step = p.n;
      if (packs_b_ || width % Tile::lanes != 0) {  // the tile reads whole vectors of B
        pack_b(o.b, j, width, depths, b_panel);
        b = b_panel;
        b_step = tile_columns;
      }
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
  }

 private:
  // The size of blocks of at most `most` (rounded up to `unit`), as equal as can be, that cover `size`.
  static std::int64_t equal_blocks(std::int64_t size, std::int64_t most, std::int64_t unit) {
    const std::int64_t blocks = (size + most - 1) / most;
    return ((size + blocks - 1) / blocks + unit - 1) / unit * unit;
  }

  // b_panel[depth, NR], zero beyond `width`.
  void pack_b(const float* b, std::int64_t j, std::int64_t width, Range depths,
              float* b_panel) const {
    const std::int64_t depth = depths.end - depths.begin;
    if (!problem_.transpose_b) {
      copy_rows<tile_columns>(b + depths.begin * problem_.n + j, problem_.n, depth, width, b_panel);
      return;
    }
    if (width % Tile::lanes != 0) std::fill_n(b_panel, depth * tile_columns, 0.0f);
    transpose(width, depth, b + j * problem_.k + depths.begin, problem_.k, b_panel, tile_columns);
  }

  // panel[count, Width] from rows of `width` floats, zero up to the next whole vector beyond them.
  template <std::int64_t Width>
  static void copy_rows(const float* source, std::int64_t step, std::int64_t count,
                        std::int64_t width, float* panel) {
    if (width == Width) {
      for (std::int64_t l = 0; l < count; ++l, source += step, panel += Width)
        std::copy_n(source, Width, panel);
      return;
    }
    for (std::int64_t l = 0; l < count; ++l, source += step, panel += Width) {
      std::copy_n(source, width, panel);
      std::fill_n(panel + width, Width - width, 0.0f);
    }
  }

  Problem problem_;
  std::int64_t depth_, block_rows_;
  bool packs_a_, packs_b_;
};

}  // namespace stepladder::matmul
