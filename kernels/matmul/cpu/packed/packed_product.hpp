// The packed product of blocks, with its packing and its choice of the transposed product.
//
//   block of A   [MC, KC]   read in place from L2, one row per broadcast
//   panel of B   [KC, NR]   packed: consecutive cache lines, which never conflict for a cache set
//   tile of C    [MR, NR]   registers (kernels/common/cpu/gemm_tile.hpp)
//
// The first tile of a column packs the panel of B while it computes. A transposed B is packed
// before, by transposing squares in registers. If that, or unused lanes, would cost more, the
// transposed product Cᵀ = op(B)ᵀ op(A)ᵀ is computed, and Cᵀ is transposed at the end.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/gemm_tile.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/matmul/cpu/packed/epilogue.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul::inline STEPLADDER_ISA {

// C is read and written once per KC steps of k. A block of A is at most 480 KiB, half of an L2 of
// 1 MiB; 240 rows are whole tiles of 8 and of 6.
inline constexpr std::int64_t max_kc = 512, max_mc = 240;

// fuses: the epilogue of the problem is applied to each tile after its last block of k.
template <bool fuses = false>
class PackedProduct {
 public:
  using Tile = GemmTile<>;

  // adds: multiply() can add to C. The transposed product, which cannot, is not considered.
  explicit PackedProduct(const Problem& problem, int threads = 1, bool adds = false)
      : transposed_(!adds && cost(transposed(problem)) + transpose_cycles * size_of_c(problem) <
                                 cost(problem)),
        problem_(transposed_ ? transposed(problem) : problem),
        kc_(equal_blocks(problem_.k, max_kc, 1)),
        mc_(equal_blocks(problem_.m, max_mc, Tile::rows)),
        b_panels_(aligned_array<float>(static_cast<std::size_t>(threads * panel_size()))),
        c_transposed_(
            aligned_array<float>(transposed_ ? static_cast<std::size_t>(size_of_c(problem)) : 0)) {}

  // The product that is computed: the problem or its transpose.
  const Problem& computed() const { return problem_; }

  // Computes `rows` and `columns` of the C of computed(), or adds the product to them. `o` are the
  // operands of the problem.
  void multiply(const Operands& o, Range rows, Range columns, int thread = 0, bool adds = false) {
    const Problem& p = problem_;
    const Operands computed{transposed_ ? o.b : o.a, transposed_ ? o.a : o.b,
                            transposed_ ? c_transposed_.get() : o.c, o.bias};
    float* b_panel = b_panels_.get() + thread * panel_size();
    for (std::int64_t l = 0; l < p.k; l += kc_)
      for (std::int64_t i = rows.begin; i < rows.end; i += mc_)
        for (std::int64_t j = columns.begin; j < columns.end; j += Tile::columns)
          multiply_column(computed, {i, std::min(rows.end, i + mc_)},
                          {j, std::min(columns.end, j + Tile::columns)},
                          {l, std::min(p.k, l + kc_)}, adds || l > 0, b_panel);
    if (transposed_)
      transpose(c_transposed_.get() + rows.begin * p.n + columns.begin, p.n,
                o.c + columns.begin * p.m + rows.begin, p.m, rows.end - rows.begin,
                columns.end - columns.begin);
  }

 private:
  // Cycles to transpose an element: a quarter of a shuffle, plus loads and stores.
  static constexpr double transpose_cycles = 0.4;

  // Cᵀ = op(B)ᵀ op(A)ᵀ
  static Problem transposed(const Problem& p) {
    return {.m = p.n,
            .n = p.m,
            .k = p.k,
            .transpose_a = !p.transpose_b,
            .transpose_b = !p.transpose_a,
            .epilogue = p.epilogue};
  }
  static double size_of_c(const Problem& p) { return static_cast<double>(p.m * p.n); }

  // Estimated cycles: the multiply-adds of whole vectors, and packing.
  static double cost(const Problem& p) {
    const std::int64_t vectors = ceil_div(p.n, Tile::lanes);
    return static_cast<double>(p.m * vectors * p.k) +
           (p.transpose_b ? transpose_cycles * static_cast<double>(p.n * p.k) : 0);
  }

  // The size of nearly equal blocks that cover `size`, at most `max` rounded up to `granule`.
  static std::int64_t equal_blocks(std::int64_t size, std::int64_t max, std::int64_t granule) {
    const std::int64_t blocks = ceil_div(size, max);
    return round_up(ceil_div(size, blocks), granule);
  }

  std::int64_t panel_size() const { return kc_ * Tile::columns; }  // floats

  // One column of tiles and one block of k, which overwrites C or adds to it; the last applies the
  // epilogue.
  void multiply_column(const Operands& o, Range rows, Range columns, Range block, bool adds,
                       float* b_panel) const {
    if constexpr (fuses) {
      const bool last = block.end == problem_.k, relu = problem_.epilogue == Epilogue::bias_relu;
      if (last && transposed_)  // one bias per row of Cᵀ
        return multiply_column(o, rows, columns, block, adds, b_panel,
                               [&](std::int64_t row) { return RowBias(o.bias + row, relu); });
      if (last)
        return multiply_column(o, rows, columns, block, adds, b_panel, [&](std::int64_t) {
          return ColumnBias(o.bias + columns.begin, relu);
        });
    }
    multiply_column(o, rows, columns, block, adds, b_panel,
                    [](std::int64_t) { return IdentityEpilogue{}; });
  }

  // epilogue_at(i) returns the epilogue of the tile whose first row is i.
  template <class EpilogueAt>
  void multiply_column(const Operands& o, Range rows, Range columns, Range block, bool adds,
                       float* b_panel, EpilogueAt epilogue_at) const {
    const Problem& p = problem_;
    const std::int64_t k = block.end - block.begin, width = columns.end - columns.begin;
    const std::int64_t a_row = p.transpose_a ? 1 : p.k, a_step = p.transpose_a ? p.m : 1;
    const float* a = o.a + block.begin * a_step;
    float* c = o.c + columns.begin;
    if (p.transpose_b)
      transpose(o.b + columns.begin * p.k + block.begin, p.k, b_panel, Tile::columns, width, k);
    const std::int64_t height = rows.end - rows.begin;
    const std::int64_t tiles = ceil_div(height, Tile::rows);
    for (std::int64_t t = 0; t < tiles; ++t) {  // of nearly equal heights
      const Range tile = partition(height, tiles, t);
      const std::int64_t i = rows.begin + tile.begin;
      if (t == 0 && !p.transpose_b)
        Tile::multiply_packing(k, a + i * a_row, a_row, a_step,
                               o.b + block.begin * p.n + columns.begin, p.n, b_panel, c + i * p.n,
                               p.n, tile.end - tile.begin, width, adds, epilogue_at(i));
      else
        Tile::multiply_strided(k, a + i * a_row, a_row, a_step, b_panel, Tile::columns, c + i * p.n,
                               p.n, tile.end - tile.begin, width, adds, epilogue_at(i));
    }
  }

  bool transposed_;
  Problem problem_;  // computed()
  std::int64_t kc_, mc_;
  AlignedArray<float> b_panels_;      // [threads, KC, NR]
  AlignedArray<float> c_transposed_;  // [computed m, computed n] if transposed
};

}  // namespace stepladder::matmul::inline STEPLADDER_ISA
