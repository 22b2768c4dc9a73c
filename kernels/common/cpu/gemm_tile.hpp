// The micro-kernel of a matrix product: a block of C stays in registers while A and B stream past
// (Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008; Van Zee and
// van de Geijn, BLIS, 2015).
//
//                   b [k, columns]
//                   b0 | b1 | b2      one step of k for 8 x 48 on AVX-512:
//   a [k, rows] a0  c  | c  | c         3 vector loads of b, 8 broadcasts of a, 24 FMAs
//               a1  c  | c  | c       24 accumulators, 3 vectors of b and 1 of a take 28 of 32
//               …   c  | c  | c       registers. 24 independent accumulators hide the latency of
//               a7  c  | c  | c       the FMA: 4 cycles on 1 or 2 units.
//
// Tails use a smaller tile of m rows and ceil(n / lanes) vectors, so no whole row or vector is
// wasted. The accumulators are an array whose indices are all constants of a pack expansion: GCC
// keeps such an array in registers, and spills one that a loop indexes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <xsimd/xsimd.hpp>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/partial_vector.hpp"
#include "kernels/common/integer_math.hpp"

namespace stepladder::inline STEPLADDER_ISA {

// Memory for panels of b. It is zeroed, because whole vectors are multiplied and a panel's last one
// may have fewer columns: denormal numbers there would take an assist of about 150 cycles for each
// multiply-add. Throws std::bad_alloc.
inline AlignedArray<float> panels_of_b(std::int64_t floats) {
  AlignedArray<float> panels = aligned_array<float>(static_cast<std::size_t>(floats));
  std::fill_n(panels.get(), floats, 0.0F);
  return panels;
}

// An epilogue maps each finished vector of a tile to the vector that is stored. This one changes
// nothing; kernels/matmul/cpu/packed/bias_relu.hpp has another.
struct IdentityEpilogue {
  // (accumulators, row and first column within the tile, number of columns that are stored)
  template <class Vector>
  Vector operator()(Vector acc, std::int64_t, std::int64_t, std::int64_t) const {
    return acc;
  }
};

// By default 8 x 3 vectors with 32 registers, as AVX-512 and NEON have them, 6 x 2 with 16.
// Lanes: Vector, or Scalar (scalar.hpp).
template <std::int64_t tile_rows = vector_registers == 32 ? 8 : 6,
          std::int64_t tile_vectors = vector_registers == 32 ? 3 : 2, class Lanes = Vector>
struct GemmTile {
  static constexpr std::int64_t lanes = Lanes::size;
  static constexpr std::int64_t vectors = tile_vectors;
  static constexpr std::int64_t rows = tile_rows;           // MR
  static constexpr std::int64_t columns = vectors * lanes;  // NR

  // c[i, j] = (accumulate ? c[i, j] : 0) + sum over l < k of a_panel[l, i] · b_panel[l, j]
  // for i < m <= rows, j < n <= columns.
  //   a_panel  [k, rows]     element (l, i) at l * rows + i; columns i >= m are not read
  //   b_panel  [k, columns]  columns j >= n may be read and are ignored
  //   c        [m, n]        row i at c + i * ldc, any alignment; nothing else is written
  static void multiply(std::int64_t k, const float* a_panel, const float* b_panel, float* c,
                       std::int64_t ldc, std::int64_t m, std::int64_t n, bool accumulate) {
    multiply_strided(k, a_panel, 1, rows, b_panel, columns, c, ldc, m, n, accumulate);
  }

  // Multiplies operands that are not packed: element (l, i) of a is at l * a_step + i * a_row, row
  // l of b at l * b_step. n is rounded up to whole vectors when b is read. Stores
  // epilogue(c[i, j]).
  template <class Epilogue = IdentityEpilogue>
  static void multiply_strided(std::int64_t k, const float* a, std::int64_t a_row,
                               std::int64_t a_step, const float* b, std::int64_t b_step, float* c,
                               std::int64_t ldc, std::int64_t m, std::int64_t n, bool accumulate,
                               Epilogue epilogue = {}) {
    const std::int64_t width = ceil_div(n, lanes);
    tiles<Rows::padded, Epilogue>[(m - 1) * vectors + width - 1](
        k, a, a_row, a_step, b, b_step, nullptr, c, ldc, n, accumulate, epilogue);
  }

  // Reads only n columns of b, and prefetches the rows of b two panels ahead; otherwise as above.
  template <class Epilogue = IdentityEpilogue>
  static void multiply_in_place(std::int64_t k, const float* a, std::int64_t a_row,
                                std::int64_t a_step, const float* b, std::int64_t b_step, float* c,
                                std::int64_t ldc, std::int64_t m, std::int64_t n, bool accumulate,
                                Epilogue epilogue = {}) {
    const std::int64_t width = ceil_div(n, lanes);
    tiles<Rows::exact, Epilogue>[(m - 1) * vectors + width - 1](
        k, a, a_row, a_step, b, b_step, nullptr, c, ldc, n, accumulate, epilogue);
  }

  // Also packs b into the panel [k, columns] that the next tiles read. The copy costs one
  // store per vector, which overlaps with the arithmetic. Only n columns of b are read; the panel
  // is defined up to the next whole vector. prefetches: the rows of b two panels ahead.
  template <bool prefetches = true, class Epilogue = IdentityEpilogue>
  static void multiply_packing(std::int64_t k, const float* a, std::int64_t a_row,
                               std::int64_t a_step, const float* b, std::int64_t b_step,
                               float* b_panel, float* c, std::int64_t ldc, std::int64_t m,
                               std::int64_t n, bool accumulate, Epilogue epilogue = {}) {
    const std::int64_t width = ceil_div(n, lanes);
    tiles<prefetches ? Rows::packed : Rows::near, Epilogue>[(m - 1) * vectors + width - 1](
        k, a, a_row, a_step, b, b_step, b_panel, c, ldc, n, accumulate, epilogue);
  }

  // Multiplies by a panel, and prefetches k cache lines to L2: those of next + l * next_step.
  template <class Epilogue = IdentityEpilogue>
  static void multiply_prefetching(std::int64_t k, const float* a, std::int64_t a_row,
                                   std::int64_t a_step, float* b_panel, const float* next,
                                   std::int64_t next_step, float* c, std::int64_t ldc,
                                   std::int64_t m, std::int64_t n, bool accumulate,
                                   Epilogue epilogue = {}) {
    const std::int64_t width = ceil_div(n, lanes);
    tiles<Rows::ahead, Epilogue>[(m - 1) * vectors + width - 1](
        k, a, a_row, a_step, next, next_step, b_panel, c, ldc, n, accumulate, epilogue);
  }

  // c[i, j] for i < m and j < panels * columns, from as many panels of b, one after the other. With
  // few steps of k, calls and the wait for c would take longer than the arithmetic: there is one
  // call, and the tile after the present one is prefetched for writing.
  static void multiply_panels(std::int64_t k, const float* a, std::int64_t a_row,
                              std::int64_t a_step, const float* b_panels, std::int64_t panels,
                              float* c, std::int64_t ldc, std::int64_t m, bool accumulate) {
    rows_of_tiles[m - 1](k, a, a_row, a_step, b_panels, panels, c, ldc, accumulate);
  }

 private:
  // Rows of b: whole vectors may be read; only n columns; only n columns, and copied to the panel;
  // the same without prefetching others; prefetched, while the panel is read.
  enum class Rows { padded, exact, packed, near, ahead };

  template <class Epilogue>
  using Tile = void (*)(std::int64_t k, const float* a, std::int64_t a_row, std::int64_t a_step,
                        const float* b, std::int64_t b_step, float* b_panel, float* c,
                        std::int64_t ldc, std::int64_t n, bool accumulate, Epilogue epilogue);
  // While a row of b is packed, its part two panels ahead, in the same page, is prefetched. One
  // panel would do if rows began at cache lines; where they do not, adjacent panels share lines. L1
  // has too few miss buffers for so many lines, L2 has enough.
  static constexpr std::int64_t panels_ahead = 2;
  // A narrow tile reads about as much of a as of b. Where rows of a run along k, four steps are
  // unrolled, since their addresses would take as long as the arithmetic, and rows of the next tile
  // are prefetched: 3 or 6 per four steps, so that all come by while a cache line of a is read.
  static constexpr std::int64_t narrow = lanes == 16 ? 2 : 1;
  template <std::int64_t Height>
  static void prefetch_rows(const float* next, std::int64_t row) {
    for (std::int64_t i = 0; i < Height; i += 12)
      for (std::int64_t j = i; j < i + 3; ++j) prefetch_l2(next + j * row);
  }
  static void prefetch_l2(const float* p) { __builtin_prefetch(p, 0, 2); }
  // Else GCC would replace several pointers by one and their differences, and spill these.
  static void keep_in_register(const float*& p) { __asm__("" : "+r"(p)); }

  // A tile of `Height` rows and `Width` vectors. R runs over the rows, V over the vectors of a row,
  // I over the accumulators, row by row, and P over every third row.
  template <Rows source, std::int64_t Height, std::int64_t Width, class Epilogue, std::size_t... R,
            std::size_t... V, std::size_t... I, std::size_t... P>
  [[gnu::always_inline]] static void multiply_tile(
      std::index_sequence<R...>, std::index_sequence<V...>, std::index_sequence<I...>,
      std::index_sequence<P...>, std::int64_t k, const float* a, std::int64_t a_row,
      std::int64_t a_step, const float* b, std::int64_t b_step, float* b_panel, float* c,
      std::int64_t ldc, std::int64_t n, bool accumulate, Epilogue epilogue) {
    const std::int64_t rest = n - (Width - 1) * lanes;  // columns of the last vector
    Lanes acc[] = {((void)I, Lanes(0.0f))...};
    // Row i is at a multiple of a_row from pointer i / 3: x86 adds one or two times a register in a
    // load, and an address of each row would not fit the registers.
    const float* every_third[] = {a + static_cast<std::int64_t>(P) * 3 * a_row...};
    // Step l + ahead of k.
    const auto step = [&](auto ahead) __attribute__((always_inline)) {
      constexpr bool is_whole = source == Rows::padded || source == Rows::ahead;
      const float* row = source == Rows::ahead ? b_panel : b;
      const Lanes b_l[] = {!is_whole && V + 1 == Width && rest < lanes
                               ? load_partial<Lanes>(row + V * lanes, rest)
                               : Lanes::load_unaligned(row + V * lanes)...};
      if constexpr (source == Rows::exact || source == Rows::packed)
        (prefetch_l2(b + panels_ahead * columns + V * lanes), ...);
      if constexpr (source == Rows::ahead) prefetch_l2(b);
      if constexpr (source == Rows::packed || source == Rows::near)
        (b_l[V].store_aligned(b_panel + V * lanes), ...);
      if constexpr (source != Rows::padded && source != Rows::exact) b_panel += columns;
      ((acc[I] = fma(Lanes(every_third[I / Width / 3][I / Width % 3 * a_row + ahead]),
                     b_l[I % Width], acc[I])),
       ...);
      b += b_step;
    };
    std::int64_t l = 0;
    if constexpr (Width <= narrow && source == Rows::padded) {
      const float* next = a + Height * a_row + line_floats;
      if (a_step == 1)
        for (; l + 4 <= k; l += 4) {
          (keep_in_register(every_third[P]), ...);
          keep_in_register(next);
          prefetch_rows<Height>(next, a_row);
          next += l % line_floats == 12 ? line_floats - 9 * a_row : 3 * a_row;
          step(std::integral_constant<std::int64_t, 0>{});
          step(std::integral_constant<std::int64_t, 1>{});
          step(std::integral_constant<std::int64_t, 2>{});
          step(std::integral_constant<std::int64_t, 3>{});
          ((every_third[P] += 4), ...);
        }
    }
    for (; l < k; ++l) {
      (keep_in_register(every_third[P]), ...);
      step(std::integral_constant<std::int64_t, 0>{});
      ((every_third[P] += a_step), ...);
    }
    // c moves from row to row: all addresses at once would not fit the registers.
    const auto store_row = [&](auto row) __attribute__((always_inline)) {
      ((V + 1 < Width || rest == lanes
            ? store<row, V * lanes>(c, acc[row * Width + V], accumulate, epilogue)
            : store<row, V * lanes>(c, acc[row * Width + V], accumulate, epilogue, rest)),
       ...);
      c += ldc;
    };
    (store_row(std::integral_constant<std::size_t, R>{}), ...);
  }

  template <std::int64_t row, std::int64_t column, class Epilogue>
  static void store(float* c, Lanes acc, bool accumulate, const Epilogue& epilogue) {
    float* at = c + column;
    epilogue(accumulate ? acc + Lanes::load_unaligned(at) : acc, row, column, lanes)
        .store_unaligned(at);
  }
  template <std::int64_t row, std::int64_t column, class Epilogue>
  static void store(float* c, Lanes acc, bool accumulate, const Epilogue& epilogue,
                    std::int64_t count) {
    float* at = c + column;
    store_partial(
        at, epilogue(accumulate ? acc + load_partial<Lanes>(at, count) : acc, row, column, count),
        count);
  }

  template <Rows source, std::int64_t Height, std::int64_t Width, class Epilogue>
  static void tile(std::int64_t k, const float* a, std::int64_t a_row, std::int64_t a_step,
                   const float* b, std::int64_t b_step, float* b_panel, float* c, std::int64_t ldc,
                   std::int64_t n, bool accumulate, Epilogue epilogue) {
    multiply_tile<source, Height, Width>(
        std::make_index_sequence<Height>{}, std::make_index_sequence<Width>{},
        std::make_index_sequence<Height * Width>{},
        std::make_index_sequence<ceil_div(Height, std::int64_t{3})>{}, k, a, a_row, a_step, b,
        b_step, b_panel, c, ldc, n, accumulate, epilogue);
  }

  template <Rows source, class Epilogue, std::size_t... T>
  static constexpr std::array<Tile<Epilogue>, sizeof...(T)> all_tiles(std::index_sequence<T...>) {
    return {&tile<source, T / vectors + 1, T % vectors + 1, Epilogue>...};
  }
  template <Rows source, class Epilogue>
  static constexpr std::array<Tile<Epilogue>, rows * vectors> tiles =
      all_tiles<source, Epilogue>(std::make_index_sequence<rows * vectors>{});

  using RowOfTiles = void (*)(std::int64_t k, const float* a, std::int64_t a_row,
                              std::int64_t a_step, const float* b_panels, std::int64_t panels,
                              float* c, std::int64_t ldc, bool accumulate);

  template <std::int64_t Height>
  static void row_of_tiles(std::int64_t k, const float* a, std::int64_t a_row, std::int64_t a_step,
                           const float* b_panels, std::int64_t panels, float* c, std::int64_t ldc,
                           bool accumulate) {
    for (std::int64_t p = 0; p < panels; ++p, b_panels += k * columns, c += columns) {
      if (p + 1 < panels)  // what follows may be another thread's
        for (std::int64_t i = 0; i < Height; ++i)
          for (std::int64_t v = 0; v < vectors; ++v)
            __builtin_prefetch(c + i * ldc + columns + v * lanes, 1, 3);
      multiply_tile<Rows::padded, Height, vectors>(
          std::make_index_sequence<Height>{}, std::make_index_sequence<vectors>{},
          std::make_index_sequence<Height * vectors>{},
          std::make_index_sequence<ceil_div(Height, std::int64_t{3})>{}, k, a, a_row, a_step,
          b_panels, columns, nullptr, c, ldc, columns, accumulate, IdentityEpilogue{});
    }
  }
  template <std::size_t... T>
  static constexpr std::array<RowOfTiles, rows> all_rows_of_tiles(std::index_sequence<T...>) {
    return {&row_of_tiles<T + 1>...};
  }
  static constexpr std::array<RowOfTiles, rows> rows_of_tiles =
      all_rows_of_tiles(std::make_index_sequence<rows>{});
};

}  // namespace stepladder::inline STEPLADDER_ISA
