// The product of a short operand and a long one whose rows run along K: every element of C is a dot
// product, and rows of B pass once, in memory order, without being transposed or packed.
//
//   tile of C   [up to 6 rows of A, 4 to 8 rows of B]   one accumulator vector each, lanes along K
//
// The lanes of an accumulator are added once per element of C and block of K. Where several tiles
// share rows of B, each prefetches a part of the next rows, so that B arrives during all of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/common/cpu/partial_vector.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/simd.hpp"
#include "kernels/common/cpu/sum_lanes.hpp"

namespace stepladder::matmul::inline STEPLADDER_ISA {

class DotProducts {
 public:
  struct Operands {
    const float* a;  // [rows, a_row]
    std::int64_t a_row;
    const float* b;  // [columns, b_row]
    std::int64_t b_row;
    float* c;  // element (i, j) at c + i · c_row + j · c_column, overwritten
    std::int64_t c_row, c_column;
  };

  // c(i, j) = sum over l in k of a[i, l] · b[j, l] for i < rows, j in columns.
  static void multiply(const Operands& o, std::int64_t rows, Range columns, Range k) {
    const std::int64_t tiles = rows <= max_rows ? 1 : ceil_div(rows, rows_of_many);
    // One pass along K where a tile takes all rows of A, else blocks that stay in L1 and L2.
    const std::int64_t blocks = tiles == 1 ? 1 : ceil_div(k.end - k.begin, max_kc);
    const std::int64_t wide = most_columns(ceil_div(rows, tiles));
    for (std::int64_t block = 0; block < blocks; ++block) {
      const Range part = partition(k.end - k.begin, blocks, block, Vector::size);
      for (std::int64_t j = columns.begin; j < columns.end; j += wide) {
        const std::int64_t width = std::min(wide, columns.end - j);
        for (std::int64_t t = 0; t < tiles; ++t) {
          const Range tile_rows = partition(rows, tiles, t);
          const std::int64_t next = j + wide + rows_ahead * t;
          const bool prefetches =
              tiles > 1 && rows_ahead * t < wide && next + rows_ahead <= columns.end;
          tile_of(tile_rows.end - tile_rows.begin, width)(
              o.a + tile_rows.begin * o.a_row + k.begin + part.begin, o.a_row,
              o.b + j * o.b_row + k.begin + part.begin, o.b_row, part.end - part.begin,
              o.c + tile_rows.begin * o.c_row + j * o.c_column, o.c_row, o.c_column, block > 0,
              prefetches ? o.b + next * o.b_row + k.begin + part.begin : nullptr);
        }
      }
    }
  }

 private:
  static constexpr std::int64_t lanes = Vector::size;
  static constexpr std::int64_t max_kc = 1024;
  static constexpr std::int64_t rows_ahead = 2;  // of B that a tile prefetches
  // Rows of A in a tile, if it takes all, and if there are several tiles: then few rows of A, which
  // come from L2 again and again, meet many of B, which stay in L1.
  static constexpr std::int64_t max_rows = vector_registers == 32 ? 6 : 3,
                                rows_of_many = vector_registers == 32 ? 4 : 3;
  // Rows of B in a tile with `rows` of A: up to 24 accumulators with 32 registers, 12 with 16.
  static constexpr std::int64_t max_columns = 8;
  static constexpr std::int64_t most_columns(std::int64_t rows) {
    return vector_registers == 32 ? std::min(max_columns, 24 / rows) : rows == 1 ? max_columns : 4;
  }

  using Tile = void (*)(const float* a, std::int64_t a_row, const float* b, std::int64_t b_row,
                        std::int64_t k, float* c, std::int64_t c_row, std::int64_t c_column,
                        bool accumulate, const float* ahead);

  // R runs over the rows of A, J over those of B; I over the accumulators, row of A by row of A.
  // `ahead`, unless null, are rows of B to be prefetched.
  template <std::size_t... R, std::size_t... J, std::size_t... I>
  static void multiply_tile(std::index_sequence<R...>, std::index_sequence<J...>,
                            std::index_sequence<I...>, const float* a, std::int64_t a_row,
                            const float* b, std::int64_t b_row, std::int64_t k, float* c,
                            std::int64_t c_row, std::int64_t c_column, bool accumulate,
                            const float* ahead) {
    constexpr std::size_t columns = sizeof...(J);
    Vector acc[] = {((void)I, Vector(0.0F))...};
    // Inlined twice: a call would keep the accumulators in memory.
    const auto step = [&](const auto& load, std::int64_t l) __attribute__((always_inline)) {
      if (ahead != nullptr)
        for (std::int64_t j = 0; j < rows_ahead; ++j)
          __builtin_prefetch(ahead + j * b_row + l, 0, 2);
      const Vector b_l[] = {in_register(load(b + static_cast<std::int64_t>(J) * b_row + l))...};
      const Vector a_l[] = {load(a + static_cast<std::int64_t>(R) * a_row + l)...};
      ((acc[I] = xsimd::fma(a_l[I / columns], b_l[I % columns], acc[I])), ...);
    };
    std::int64_t l = 0;
    for (; l + lanes <= k; l += lanes)
      step([](const float* at) { return Vector::load_unaligned(at); }, l);
    if (l < k) step([&](const float* at) { return load_partial(at, k - l); }, l);
    alignas(64) float sums[round_up(sizeof...(I), lanes)];
    sum_accumulators(std::make_index_sequence<lanes>{},
                     std::make_index_sequence<ceil_div(sizeof...(I), lanes)>{}, acc, sums);
    (store(c + static_cast<std::int64_t>(I / columns) * c_row +
               static_cast<std::int64_t>(I % columns) * c_column,
           sums[I], accumulate),
     ...);
  }

  // sums[i] = the sum of the lanes of acc[i], as many at a time as a vector has lanes. L runs over
  // the lanes, G over the groups; the last is filled up with zeros.
  template <std::size_t... L, std::size_t... G, std::size_t count>
  [[gnu::always_inline]] static void sum_accumulators(std::index_sequence<L...>,
                                                      std::index_sequence<G...>,
                                                      const Vector (&acc)[count], float* sums) {
    const auto group = [&](auto first) __attribute__((always_inline)) {
      const Vector part[] = {(first + L < count ? acc[(first + L) % count] : Vector(0.0F))...};
      sum_lanes(part).store_aligned(sums + first);
    };
    (group(std::integral_constant<std::size_t, G * sizeof...(L)>{}), ...);
  }

  static void store(float* at, float sum, bool accumulate) { *at = accumulate ? *at + sum : sum; }

  template <std::int64_t Rows, std::int64_t Columns>
  static void tile(const float* a, std::int64_t a_row, const float* b, std::int64_t b_row,
                   std::int64_t k, float* c, std::int64_t c_row, std::int64_t c_column,
                   bool accumulate, const float* ahead) {
    multiply_tile(std::make_index_sequence<Rows>{}, std::make_index_sequence<Columns>{},
                  std::make_index_sequence<Rows * Columns>{}, a, a_row, b, b_row, k, c, c_row,
                  c_column, accumulate, ahead);
  }

  template <std::size_t T>
  static constexpr Tile tile_at() {
    constexpr std::int64_t rows = T / max_columns + 1, columns = T % max_columns + 1;
    if constexpr (columns <= most_columns(rows))
      return &tile<rows, columns>;
    else
      return nullptr;
  }
  template <std::size_t... T>
  static constexpr std::array<Tile, sizeof...(T)> all_tiles(std::index_sequence<T...>) {
    return {tile_at<T>()...};
  }

  // The tile of `rows` x `columns`; those with more than 24 (12) accumulators are never asked for.
  static Tile tile_of(std::int64_t rows, std::int64_t columns) {
    static constexpr auto tiles =
        all_tiles(std::make_index_sequence<static_cast<std::size_t>(max_rows * max_columns)>{});
    return tiles[static_cast<std::size_t>((rows - 1) * max_columns + columns - 1)];
  }
};

}  // namespace stepladder::matmul::inline STEPLADDER_ISA
