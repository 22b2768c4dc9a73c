// A matrix product with switches for vectors, a register tile, and panels of B: inside the lattices
// of matmul and convolution, and inside the rungs that multiply an unfolded image.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/common/cpu/gemm_tile.hpp"
#include "kernels/common/cpu/scalar.hpp"
#include "kernels/common/cpu/simd.hpp"

namespace stepladder::inline STEPLADDER_ISA {

template <bool vectors, bool tiled, bool packed>
struct Product {
  using Lanes = std::conditional_t<vectors, Vector, Scalar>;
  static constexpr std::int64_t lanes = Lanes::size;
  // 4 x 3 floats: 12 accumulators, 3 floats of B and 1 of A are all 16 registers of AVX2.
  using Tile = std::conditional_t<vectors, GemmTile<>, GemmTile<4, 3, Scalar>>;
  static constexpr bool has_panels = tiled && packed;

  // Columns of a panel, and floats between its rows; panels follow each other, [k, panel] each.
  static constexpr std::int64_t panel = Tile::columns;
  static std::int64_t whole_panels(std::int64_t n) { return ceil_div(n, panel) * panel; }

  // c[m, n] = or += a[m, k] · b[k, n]. Element (i, l) of a is at i · a_row + l · a_step; rows of b
  // are b_row apart, or b is in panels; rows of c are c_row apart. Not inlined, so that one thread
  // and several execute the same instructions: inside a parallel region GCC 12 moves a pointer from
  // a vector register at every step of the inner loop.
  [[gnu::noinline]] static void multiply(const float* a, std::int64_t a_row, std::int64_t a_step,
                                         const float* b, std::int64_t b_row, float* c,
                                         std::int64_t c_row, std::int64_t m, std::int64_t n,
                                         std::int64_t k, bool adds) {
    if constexpr (tiled)
      for (std::int64_t i = 0; i < m; i += Tile::rows)
        multiply_tiles(a + i * a_row, a_row, a_step, b, b_row, c + i * c_row, c_row,
                       std::min(Tile::rows, m - i), n, k, adds);
    else
      for (std::int64_t i = 0; i < m; ++i)
        multiply_row(a + i * a_row, a_step, b, b_row, c + i * c_row, n, k, adds);
  }

  // y[n] += a · x[n]
  static void add_multiple(float a, const float* x, float* y, std::int64_t n) {
    const Lanes factor(a);
    const std::int64_t whole = n / lanes * lanes;
    for (std::int64_t j = 0; j < whole; j += lanes)
      fma(factor, Lanes::load_unaligned(x + j), Lanes::load_unaligned(y + j))
          .store_unaligned(y + j);
    if (whole < n)
      store_partial(y + whole,
                    fma(factor, load_partial<Lanes>(x + whole, n - whole),
                        load_partial<Lanes>(y + whole, n - whole)),
                    n - whole);
  }

 private:
  // A row of tiles: each stays in registers for all k.
  static void multiply_tiles(const float* a, std::int64_t a_row, std::int64_t a_step,
                             const float* b, std::int64_t b_row, float* c, std::int64_t c_row,
                             std::int64_t m, std::int64_t n, std::int64_t k, bool adds) {
    for (std::int64_t j = 0; j < n; j += panel) {
      const std::int64_t width = std::min(panel, n - j);
      if constexpr (packed)
        Tile::multiply_strided(k, a, a_row, a_step, b + j * k, panel, c + j, c_row, m, width, adds);
      else
        Tile::multiply_in_place(k, a, a_row, a_step, b + j, b_row, c + j, c_row, m, width, adds);
    }
  }

  // A row of C is loaded and stored for each row of B.
  static void multiply_row(const float* a, std::int64_t a_step, const float* b, std::int64_t b_row,
                           float* c, std::int64_t n, std::int64_t k, bool adds) {
    if (!adds) std::fill_n(c, n, 0.0F);
    for (std::int64_t l = 0; l < k; ++l) add_multiple(a[l * a_step], b + l * b_row, c, n);
  }
};

}  // namespace stepladder::inline STEPLADDER_ISA
