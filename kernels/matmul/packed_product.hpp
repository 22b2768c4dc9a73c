// What the packed rungs share: block sizes, the packing of B, and the product of blocks. The loops
// around it are in packed.cpp and packed_openmp.cpp. A template on Arch, because its files are
// built once per ISA.
//
//   a block  [240, depth]   read where it lies, a row per broadcast: second-level cache
//   b panel  [depth, NR]    packed, so that the tiles read one line after the other, no two of them
//                           competing for the same set of the cache
//   c tile   [MR, NR]       registers (kernels/common/gemm_tile.hpp)
//
// The first tile of a column packs B's panel in passing; a transposed B is packed before, in squares
// that turn in registers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/gemm_tile.hpp"
#include "kernels/common/transpose.hpp"
#include "kernels/matmul/matmul.hpp"
#include "kernels/matmul/range.hpp"

namespace stepladder::matmul {

template <class Arch>
class PackedProduct {
 public:
  using Tile = GemmTile<Arch>;

  explicit PackedProduct(const Problem& problem)
      : problem_(problem),
        depth_(equal_blocks(problem.k, 512, 1)),
        block_rows_(equal_blocks(problem.m, 240, Tile::rows)) {}

  std::int64_t panel_size() const { return depth_ * Tile::columns; }  // floats

  // c[rows, columns] = op(A)[rows, :] · op(B)[:, columns]; b_panel is workspace of panel_size().
  void multiply(const Operands& o, Range rows, Range columns, float* b_panel) const {
    for (std::int64_t l = 0; l < problem_.k; l += depth_)
      for (std::int64_t i = rows.begin; i < rows.end; i += block_rows_)
        for (std::int64_t j = columns.begin; j < columns.end; j += Tile::columns)
          multiply_column(o, {i, std::min(rows.end, i + block_rows_)},
                          {j, std::min(columns.end, j + Tile::columns)},
                          {l, std::min(problem_.k, l + depth_)}, b_panel);
  }

 private:
  // The size of blocks of at most `most` (rounded up to `unit`), as equal as can be, that cover
  // `size`.
  static std::int64_t equal_blocks(std::int64_t size, std::int64_t most, std::int64_t unit) {
    const std::int64_t blocks = (size + most - 1) / most;
    return ((size + blocks - 1) / blocks + unit - 1) / unit * unit;
  }

  // One column of tiles, some depths; the first depths overwrite C.
  void multiply_column(const Operands& o, Range rows, Range columns, Range depths,
                       float* b_panel) const {
    const Problem& p = problem_;
    const std::int64_t depth = depths.end - depths.begin, width = columns.end - columns.begin;
    const std::int64_t a_row = p.transpose_a ? 1 : p.k, a_step = p.transpose_a ? p.m : 1;
    const float* a = o.a + rows.begin * a_row + depths.begin * a_step;
    float* c = o.c + rows.begin * p.n + columns.begin;
    std::int64_t left = rows.end - rows.begin;
    const auto next_tile = [&] {
      a += Tile::rows * a_row;
      c += Tile::rows * p.n;
      left -= Tile::rows;
    };
    if (p.transpose_b) {
      transpose<Arch>(o.b + columns.begin * p.k + depths.begin, p.k, b_panel, Tile::columns, width,
                      depth);
    } else {
      Tile::multiply_packing(depth, a, a_row, a_step, o.b + depths.begin * p.n + columns.begin,
                             p.n, b_panel, c, p.n, std::min(Tile::rows, left), width,
                             depths.begin > 0);
      next_tile();
    }
    for (; left > 0; next_tile())
      Tile::multiply_strided(depth, a, a_row, a_step, b_panel, Tile::columns, c, p.n,
                             std::min(Tile::rows, left), width, depths.begin > 0);
  }

  Problem problem_;
  std::int64_t depth_;       // KC: of k at a time
  std::int64_t block_rows_;  // MC: rows of A at a time
};

}  // namespace stepladder::matmul
