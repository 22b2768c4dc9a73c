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

#include "kernels/common/cpu/partial_vector.hpp"

namespace stepladder::inline STEPLADDER_ISA {

// What a tile does to its finished sums before it stores them: nothing. Other ways to finish are
// called the same way, see kernels/matmul/cpu/packed/epilogue.hpp.
struct AsItIs {
  // Row and column of the tile; `count` columns of the vector are wanted.
  template <class Vector>
  Vector operator()(Vector sum, std::int64_t, std::int64_t, std::int64_t) const {
    return sum;
  }
};

// 8 x 48, 6 x 16 or 6 x 8 floats, by 32 or 16 registers, unless the caller asks for another shape.
template <std::int64_t tile_rows = Vector::size == 16 ? 8 : 6,
          std::int64_t tile_vectors = Vector::size == 16 ? 3 : 2>
struct GemmTile {
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
  // of b at l * b_step. Each row of b is read up to the next whole vector after n. What is stored is
  // finish(c[i, j]).
  template <class Finish = AsItIs>
  static void multiply_strided(std::int64_t k, const float* a, std::int64_t a_row,
                               std::int64_t a_step, const float* b, std::int64_t b_step, float* c,
                               std::int64_t ldc, std::int64_t m, std::int64_t n, bool accumulate,
                               Finish finish = {}) {
    const std::int64_t width = (n + lanes - 1) / lanes;
    tiles<false, Finish>[(m - 1) * vectors + width - 1](k, a, a_row, a_step, b, b_step, nullptr, c,
                                                        ldc, n, accumulate, finish);
  }

  // The same, and the columns of b that it reads become a panel [k, columns] for the next tiles: the
  // copy costs a store beside arithmetic that is under way anyhow. Nothing beyond b's n columns is
  // read; the panel is defined up to the next whole vector.
  template <class Finish = AsItIs>
  static void multiply_packing(std::int64_t k, const float* a, std::int64_t a_row,
                               std::int64_t a_step, const float* b, std::int64_t b_step,
                               float* b_panel, float* c, std::int64_t ldc, std::int64_t m,
                               std::int64_t n, bool accumulate, Finish finish = {}) {
    const std::int64_t width = (n + lanes - 1) / lanes;
    tiles<true, Finish>[(m - 1) * vectors + width - 1](k, a, a_row, a_step, b, b_step, b_panel, c,
                                                       ldc, n, accumulate, finish);
  }

 private:
  template <class Finish>
  using Tile = void (*)(std::int64_t k, const float* a, std::int64_t a_row, std::int64_t a_step,
                        const float* b, std::int64_t b_step, float* b_panel, float* c,
                        std::int64_t ldc, std::int64_t n, bool accumulate, Finish finish);
  // A row of b is prefetched for the panels to come while it is packed for this one: its next lines
  // lie in the same page of memory. One panel ahead would do where rows begin with a line; where not,
  // panels share lines. The first level could not wait for so many lines, the second can.
  static constexpr std::int64_t panels_ahead = 2;
  // A narrow tile takes about as much from a as from b. Of the rows of the next tile, one at each step.
  static constexpr std::int64_t rows_ahead = 8, floats_ahead = 16;
  static void prefetch_to_second_level(const float* p) { __builtin_prefetch(p, 0, 2); }

  // A tile of `Rows` rows and `Width` vectors. I runs over its sums, row by row; V over its
  // vectors.
  template <bool packs, std::int64_t Rows, std::int64_t Width, class Finish, std::size_t... I,
            std::size_t... V>
  static void multiply_tile(std::index_sequence<I...>, std::index_sequence<V...>, std::int64_t k,
                            const float* a, std::int64_t a_row, std::int64_t a_step, const float* b,
                            std::int64_t b_step, float* b_panel, float* c, std::int64_t ldc,
                            std::int64_t n, bool accumulate, Finish finish) {
    const std::int64_t rest = n - (Width - 1) * lanes;  // of the last vector, which may be partial
    Vector sum[] = {((void)I, Vector(0.0f))...};
    for (std::int64_t l = 0; l < k; ++l, a += a_step, b += b_step) {
      if constexpr (Width < vectors)
        prefetch_to_second_level(a + (Rows + l % rows_ahead) * a_row + floats_ahead);
      const Vector b_l[] = {packs && V + 1 == Width && rest < lanes
                                ? load_partial(b + V * lanes, rest)
                                : Vector::load_unaligned(b + V * lanes)...};
      if constexpr (packs) {
        (b_l[V].store_aligned(b_panel + V * lanes), ...);
        (prefetch_to_second_level(b + panels_ahead * columns + V * lanes), ...);
        b_panel += columns;
      }
      ((sum[I] = xsimd::fma(Vector(a[I / Width * a_row]), b_l[I % Width], sum[I])), ...);
    }
    ((I % Width + 1 < Width || rest == lanes
          ? store<I / Width, I % Width * lanes>(c, ldc, sum[I], accumulate, finish)
          : store<I / Width, I % Width * lanes>(c, ldc, sum[I], accumulate, finish, rest)),
     ...);
  }

  template <std::int64_t row, std::int64_t column, class Finish>
  static void store(float* c, std::int64_t ldc, Vector sum, bool accumulate, const Finish& finish) {
    float* at = c + row * ldc + column;
    finish(accumulate ? sum + Vector::load_unaligned(at) : sum, row, column, lanes)
        .store_unaligned(at);
  }
  template <std::int64_t row, std::int64_t column, class Finish>
  static void store(float* c, std::int64_t ldc, Vector sum, bool accumulate, const Finish& finish,
                    std::int64_t count) {
    float* at = c + row * ldc + column;
    store_partial(
        at, finish(accumulate ? sum + load_partial(at, count) : sum, row, column, count),
        count);
  }

  template <bool packs, std::int64_t Rows, std::int64_t Width, class Finish>
  static void tile(std::int64_t k, const float* a, std::int64_t a_row, std::int64_t a_step,
                   const float* b, std::int64_t b_step, float* b_panel, float* c, std::int64_t ldc,
                   std::int64_t n, bool accumulate, Finish finish) {
    multiply_tile<packs, Rows, Width>(std::make_index_sequence<Rows * Width>{},
                                      std::make_index_sequence<Width>{}, k, a, a_row, a_step, b,
                                      b_step, b_panel, c, ldc, n, accumulate, finish);
  }

  template <bool packs, class Finish, std::size_t... T>
  static constexpr std::array<Tile<Finish>, sizeof...(T)> all_tiles(std::index_sequence<T...>) {
    return {&tile<packs, T / vectors + 1, T % vectors + 1, Finish>...};
  }
  template <bool packs, class Finish>
  static constexpr std::array<Tile<Finish>, rows * vectors> tiles =
      all_tiles<packs, Finish>(std::make_index_sequence<rows * vectors>{});
};

}  // namespace stepladder::inline STEPLADDER_ISA
