// What the packed rungs share: which product is computed, block sizes, the packing of B, and the
// product of blocks. A template on Arch, because its files are built once per ISA.
//
//   a block  [240, depth]   read where it lies, a row per broadcast: second-level cache
//   b panel  [depth, NR]    packed, so that the tiles read one line after the other, no two of them
//                           competing for the same set of the cache
//   c tile   [MR, NR]       registers (kernels/common/cpu/gemm_tile.hpp)
//
// The first tile of a column packs B's panel in passing; a transposed B is packed before, in squares
// that turn in registers. When that, or lanes left empty, would cost more, the product is computed
// the other way round, Cᵀ = op(B)ᵀ op(A)ᵀ, and Cᵀ is turned at the end. A product that fuses applies
// the problem's epilogue to the tile before it stores it, in the last depths.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/gemm_tile.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/matmul/cpu/packed/epilogue.hpp"
#include "kernels/matmul/matmul.hpp"
#include "kernels/common/cpu/partition.hpp"

namespace stepladder::matmul::inline STEPLADDER_ISA {

template <bool fuses = false>
class PackedProduct {
 public:
  using Tile = GemmTile<>;

  explicit PackedProduct(const Problem& problem, int threads = 1)
      : turned_(cost(turn(problem)) + turning * size_of_c(problem) < cost(problem)),
        problem_(turned_ ? turn(problem) : problem),
        depth_(equal_blocks(problem_.k, 512, 1)),
        block_rows_(equal_blocks(problem_.m, 240, Tile::rows)),
        b_panels_(aligned_array<float>(static_cast<std::size_t>(threads * panel_size()))),
        c_turned_(
            aligned_array<float>(turned_ ? static_cast<std::size_t>(size_of_c(problem)) : 0)) {}

  // The product that is computed: the problem itself, or the other way round.
  const Problem& computed() const { return problem_; }

  // The rows and columns of the computed product's C, by one thread. `o` are the problem's operands.
  void multiply(const Operands& o, Range rows, Range columns, int thread = 0) {
    const Problem& p = problem_;
    const Operands computed{turned_ ? o.b : o.a, turned_ ? o.a : o.b,
                            turned_ ? c_turned_.get() : o.c, o.bias};
    float* b_panel = b_panels_.get() + thread * panel_size();
    for (std::int64_t l = 0; l < p.k; l += depth_)
      for (std::int64_t i = rows.begin; i < rows.end; i += block_rows_)
        for (std::int64_t j = columns.begin; j < columns.end; j += Tile::columns)
          multiply_column(computed, {i, std::min(rows.end, i + block_rows_)},
                          {j, std::min(columns.end, j + Tile::columns)},
                          {l, std::min(p.k, l + depth_)}, b_panel);
    if (turned_)
      transpose(c_turned_.get() + rows.begin * p.n + columns.begin, p.n,
                      o.c + columns.begin * p.m + rows.begin, p.m, rows.end - rows.begin,
                      columns.end - columns.begin);
  }

 private:
  // Cycles to turn an element: a quarter of a shuffle, and its share of loads and stores.
  static constexpr double turning = 0.4;

  // Cᵀ = op(B)ᵀ op(A)ᵀ
  static Problem turn(const Problem& p) {
    return {.m = p.n,
            .n = p.m,
            .k = p.k,
            .transpose_a = !p.transpose_b,
            .transpose_b = !p.transpose_a,
            .epilogue = p.epilogue};
  }
  static double size_of_c(const Problem& p) { return static_cast<double>(p.m * p.n); }

  // Cycles, about: the multiply-adds of whole vectors, and packing.
  static double cost(const Problem& p) {
    const std::int64_t vectors = (p.n + Tile::lanes - 1) / Tile::lanes;
    return static_cast<double>(p.m * vectors * p.k) +
           (p.transpose_b ? turning * static_cast<double>(p.n * p.k) : 0);
  }

  // The size of blocks of at most `most` (rounded up to `unit`), as equal as can be, that cover
  // `size`.
  static std::int64_t equal_blocks(std::int64_t size, std::int64_t most, std::int64_t unit) {
    const std::int64_t blocks = (size + most - 1) / most;
    return ((size + blocks - 1) / blocks + unit - 1) / unit * unit;
  }

  std::int64_t panel_size() const { return depth_ * Tile::columns; }  // floats

  // One column of tiles, some depths; the first depths overwrite C, the last finish it.
  void multiply_column(const Operands& o, Range rows, Range columns, Range depths,
                       float* b_panel) const {
    if constexpr (fuses) {
      const bool last = depths.end == problem_.k, relu = problem_.epilogue == Epilogue::bias_relu;
      if (last && turned_)  // a bias for each row of Cᵀ
        return multiply_column(o, rows, columns, depths, b_panel,
                               [&](std::int64_t row) { return RowBias(o.bias + row, relu); });
      if (last)
        return multiply_column(o, rows, columns, depths, b_panel, [&](std::int64_t) {
          return ColumnBias(o.bias + columns.begin, relu);
        });
    }
    multiply_column(o, rows, columns, depths, b_panel, [](std::int64_t) { return AsItIs{}; });
  }

  // finish_from(i) finishes the tile whose first row is i.
  template <class FinishFrom>
  void multiply_column(const Operands& o, Range rows, Range columns, Range depths, float* b_panel,
                       FinishFrom finish_from) const {
    const Problem& p = problem_;
    const std::int64_t depth = depths.end - depths.begin, width = columns.end - columns.begin;
    const std::int64_t a_row = p.transpose_a ? 1 : p.k, a_step = p.transpose_a ? p.m : 1;
    const float* a = o.a + depths.begin * a_step;
    float* c = o.c + columns.begin;
    if (p.transpose_b)
      transpose(o.b + columns.begin * p.k + depths.begin, p.k, b_panel, Tile::columns, width,
                      depth);
    const std::int64_t height = rows.end - rows.begin;
    const std::int64_t tiles = (height + Tile::rows - 1) / Tile::rows;
    for (std::int64_t t = 0; t < tiles; ++t) {  // of heights as equal as can be
      const std::int64_t i = rows.begin + height * t / tiles;
      const std::int64_t next = rows.begin + height * (t + 1) / tiles;
      if (t == 0 && !p.transpose_b)
        Tile::multiply_packing(depth, a + i * a_row, a_row, a_step,
                               o.b + depths.begin * p.n + columns.begin, p.n, b_panel, c + i * p.n,
                               p.n, next - i, width, depths.begin > 0, finish_from(i));
      else
        Tile::multiply_strided(depth, a + i * a_row, a_row, a_step, b_panel, Tile::columns,
                               c + i * p.n, p.n, next - i, width, depths.begin > 0, finish_from(i));
    }
  }

  bool turned_;
  Problem problem_;               // computed
  std::int64_t depth_;            // KC: of k at a time
  std::int64_t block_rows_;       // MC: rows of A at a time
  AlignedArray<float> b_panels_;  // [threads, depth, NR]
  AlignedArray<float> c_turned_;  // [computed m, computed n]
};

}  // namespace stepladder::matmul::inline STEPLADDER_ISA
