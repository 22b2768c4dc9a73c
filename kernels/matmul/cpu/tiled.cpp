// A register tile: the loops of `simd` around a micro-kernel that keeps a tile of C in registers
// for a whole block of K. `simd` loads 5 vectors and stores 1 for 4 multiply-adds; the tile of
// 8 x 48 (AVX-512) loads 3 vectors of B and 8 floats of A for 24, and touches C once for each block
// of K.
//
// Operands are read where they lie: rows of B are n floats apart, so that the rows of a tile's
// columns share few sets of L1, and each is on another page. Packing removes that (`packed`). A
// transposed B is copied into rows, block by block, as in `blocked`.
#include <algorithm>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/gemm_tile.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {
namespace {

class Tiled final : public Plan {
 public:
  Tiled(const Problem& problem, const Resources&)
      : problem_(problem),
        block_(aligned_array<float>(problem.transpose_b ? block_k * row_stride : 0)) {}

  void run(const Operands& o) override {
    const Problem& p = problem_;
    const std::int64_t a_row = p.transpose_a ? 1 : p.k, a_step = p.transpose_a ? p.m : 1;
    for (std::int64_t j = 0; j < p.n; j += block_n)
      for (std::int64_t l = 0; l < p.k; l += block_k) {
        const std::int64_t n = std::min(block_n, p.n - j);
        const std::int64_t k = std::min(block_k, p.k - l);
        if (p.transpose_b) transpose(o.b + j * p.k + l, p.k, block_.get(), row_stride, n, k);
        const float* b = p.transpose_b ? block_.get() : o.b + l * p.n + j;  // [k, n]
        const std::int64_t b_step = p.transpose_b ? row_stride : p.n;
        const float* a = o.a + l * a_step;  // [m, k]
        float* c = o.c + j;                 // [m, n]
        for (std::int64_t i = 0; i < p.m; i += Tile::rows)
          for (std::int64_t column = 0; column < n; column += Tile::columns)
            Tile::multiply_in_place(k, a + i * a_row, a_row, a_step, b + column, b_step,
                                    c + i * p.n + column, p.n, std::min(Tile::rows, p.m - i),
                                    std::min(Tile::columns, n - column), l > 0);
      }
  }

 private:
  using Tile = GemmTile<>;
  static constexpr std::int64_t block_k = 128;                       // as in `blocked`
  static constexpr std::int64_t block_n = 10 * Tile::columns;        // 480, 160 or 80
  static constexpr std::int64_t row_stride = block_n + line_floats;  // never a power of two

  Problem problem_;
  AlignedArray<float> block_;  // [block_k, row_stride] when transpose_b
};

constexpr VariantInfo info{
    .name = "tiled",
    .technique = Technique::simd,
    .builds_on = "simd",
    .adds = "a tile of C in registers for a whole block of K; operands read in place",
    .idea = Idea::register_tile,
    .isa = build_isa,
};

const Registration registration{info, make_plan<Matmul, Tiled>};

}  // namespace
}  // namespace stepladder::matmul
