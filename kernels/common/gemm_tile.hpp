// The register tile of a matrix product: a block of C stays in registers while A and B stream past
// it (Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008; Van Zee and
// van de Geijn, BLIS, 2015).
//
//                  b [k, columns]              per step of k, for 8 x 48 on AVX-512:
//                  b0 | b1 | b2                  3 vector loads of b, 8 broadcasts of a, 24 FMAs
//   a        a0    c  | c  | c                 The 24 sums, 3 vectors of b and 1 of a fill 28 of
//   the [k,      a1    c  | c  | c                 32 registers, and 24 independent sums hide the
//    rows]   …     c  | c  | c                 latency of the FMA: 4 cycles on 1 or 2 units.
//            a7    c  | c  | c
//
// Tails run a narrower tile: m rows by ceil(n / lanes) vectors, so that no whole row or vector is
// computed in vain. The sums are an array, but every index is a constant of the pack expansion,
// which is what lets GCC keep them in registers (it spills an array that a loop indexes).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <xsimd/xsimd.hpp>

#include "kernels/common/partial_vector.hpp"

namespace stepladder {

//
// 8 x 48, 6 x 16 or 6 x 8 floats, by 32 or 16 registers, unless the caller asks for another shape.
template <class Arch, std::int64_t tile_rows = xsimd::batch<float, Arch>::size == 16 ? 8 : 6,
          std::int64_t tile_vectors = xsimd::batch<float, Arch>::size == 16 ? 3 : 2>
struct GemmTile {
  using Vector = xsimd::batch<float, Arch>;
  static constexpr std::int64_t lanes = Vector::size;
  static constexpr std::int64_t vectors = tile_vectors;
  static constexpr std::int64_t rows = tile_rows;           // MR
  static constexpr std::int64_t columns = vectors * lanes;  // NR

  // c[i, j] = (accumulate ? c[i, j] : 0) + sum over l of a_panel[l, i] · b_panel[l, j]
  // for i < m <= rows, j < n <= columns.
  //   a_panel  [k, rows]     element (l, i) at l * rows + i; columns i >= m are not read
  //   b_panel  [k, columns]  columns j >= n may be read, their values do not count
  //   c        [m, n]        row i at c + i * ldc, any alignment; nothing beyond it is touched
  static void multiply(std::int64_t k, const float* a_panel, const float* b_panel, float* c,
                       std::int64_t ldc, std::int64_t m, std::int64_t n, bool accumulate) {
    multiply_strided(k, a_panel, 1, rows, b_panel, columns, c, ldc, m, n, accumulate);
  }

  // The same on operands that were not packed: element (l, i) of a at l * a_step + i * a_row, row l
  // of b at l * b_step. Each row of b is read up to the next whole vector after n.
  static void multiply_strided(std::int64_t k, const float* a, std::int64_t a_row,
                               std::int64_t a_step, const float* b, std::int64_t b_step, float* c,
                               std::int64_t ldc, std::int64_t m, std::int64_t n, bool accumulate) {
    const std::int64_t width = (n + lanes - 1) / lanes;
    tiles<false>[(m - 1) * vectors + width - 1](k, a, a_row, a_step, b, b_step, nullptr, c, ldc, n,
                                                accumulate);
  }

  // The same, and the columns of b that it reads become a panel [k, columns] for the next tiles: the
  // copy costs a store beside arithmetic that is under way anyhow. Nothing beyond b's n columns is
  // read; the panel is defined up to the next whole vector.
  static void multiply_packing(std::int64_t k, const float* a, std::int64_t a_row,
                               std::int64_t a_step, const float* b, std::int64_t b_step,
                               float* b_panel, float* c, std::int64_t ldc, std::int64_t m,
                               std::int64_t n, bool accumulate) {
    const std::int64_t width = (n + lanes - 1) / lanes;
    tiles<true>[(m - 1) * vectors + width - 1](k, a, a_row, a_step, b, b_step, b_panel, c, ldc, n,
                                               accumulate);
  }

 private:
  using Tile = void (*)(std::int64_t k, const float* a, std::int64_t a_row, std::int64_t a_step,
                        const float* b, std::int64_t b_step, float* b_panel, float* c,
                        std::int64_t ldc, std::int64_t n, bool accumulate);
  static constexpr std::int64_t rows_ahead = 12;  // of b, prefetched while it is packed

  // A tile of `Rows` rows and `Width` vectors. I runs over its sums, row by row; V over its
  // vectors.
  template <bool packs, std::int64_t Rows, std::int64_t Width, std::size_t... I, std::size_t... V>
  static void multiply_tile(std::index_sequence<I...>, std::index_sequence<V...>, std::int64_t k,
                            const float* a, std::int64_t a_row, std::int64_t a_step, const float* b,
                            std::int64_t b_step, float* b_panel, float* c, std::int64_t ldc,
                            std::int64_t n, bool accumulate) {
    const std::int64_t rest = n - (Width - 1) * lanes;  // of the last vector, which may be partial
    Vector sum[] = {((void)I, Vector(0.0f))...};
    for (std::int64_t l = 0; l < k; ++l, a += a_step, b += b_step) {
      const Vector b_l[] = {packs && V + 1 == Width && rest < lanes
                                ? load_partial<Arch>(b + V * lanes, rest)
                                : Vector::load_unaligned(b + V * lanes)...};
      if constexpr (packs) {
        (b_l[V].store_aligned(b_panel + V * lanes), ...);
        (__builtin_prefetch(b + rows_ahead * b_step + V * lanes), ...);
        b_panel += columns;
      }
      ((sum[I] = xsimd::fma(Vector(a[I / Width * a_row]), b_l[I % Width], sum[I])), ...);
    }
    ((I % Width + 1 < Width || rest == lanes
          ? store(c + I / Width * ldc + I % Width * lanes, sum[I], accumulate)
          : store(c + I / Width * ldc + I % Width * lanes, sum[I], accumulate, rest)),
     ...);
  }

  static void store(float* c, Vector sum, bool accumulate) {
    (accumulate ? sum + Vector::load_unaligned(c) : sum).store_unaligned(c);
  }
  static void store(float* c, Vector sum, bool accumulate, std::int64_t count) {
    store_partial<Arch>(c, accumulate ? sum + load_partial<Arch>(c, count) : sum, count);
  }

  template <bool packs, std::int64_t Rows, std::int64_t Width>
  static void tile(std::int64_t k, const float* a, std::int64_t a_row, std::int64_t a_step,
                   const float* b, std::int64_t b_step, float* b_panel, float* c, std::int64_t ldc,
                   std::int64_t n, bool accumulate) {
    multiply_tile<packs, Rows, Width>(std::make_index_sequence<Rows * Width>{},
                                      std::make_index_sequence<Width>{}, k, a, a_row, a_step, b,
                                      b_step, b_panel, c, ldc, n, accumulate);
  }

  template <bool packs, std::size_t... T>
  static constexpr std::array<Tile, sizeof...(T)> all_tiles(std::index_sequence<T...>) {
    return {&tile<packs, T / vectors + 1, T % vectors + 1>...};
  }
  template <bool packs>
  static constexpr std::array<Tile, rows * vectors> tiles =
      all_tiles<packs>(std::make_index_sequence<rows * vectors>{});
};

}  // namespace stepladder
