// The product of a short operand and a long one whose rows run along C: B is read in place, and
// a wide tile of C stays in registers while all of K streams past.
//
//   tile of C   [1 row, 16 vectors] to [8 rows, 3 vectors]   accumulators
//   row of B    up to 1 KiB per step of K                    read once per tile
//
// The fewer rows, the wider the tile, so that there are always about 24 independent accumulators.
// A C too narrow for that gets several accumulators per element, which take turns along K.
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
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/matmul/cpu/skinny/stream_operands.hpp"

namespace stepladder::matmul::inline STEPLADDER_ISA {

class StreamTiles {
 public:
  // Returns true if one tile takes all of C: then B is read once, in memory order.
  static constexpr bool is_one_tile(std::int64_t rows, std::int64_t columns) {
    return rows <= max_rows && columns <= most_vectors(rows) * lanes;
  }

  // c(i, j) = sum over l in k of a(i, l) · b[l, j] for i < rows, j in columns.
  static void multiply(const StreamOperands& o, std::int64_t rows, Range columns, Range k) {
    const std::int64_t tiles = ceil_div(rows, max_rows);
    const std::int64_t wide = most_vectors(ceil_div(rows, tiles)) * lanes;
    for (std::int64_t j = columns.begin; j < columns.end; j += wide) {
      const std::int64_t width = std::min(wide, columns.end - j);
      for (std::int64_t t = 0; t < tiles; ++t) {
        const Range part = partition(rows, tiles, t);
        tile_of(part.end - part.begin, ceil_div(width, lanes))(
            o, o.a + part.begin * o.a_row + k.begin * o.a_step, o.b + k.begin * o.b_row + j,
            k.end - k.begin, o.c + part.begin * o.c_row + j * o.c_column, width);
      }
    }
  }

 private:
  static constexpr std::int64_t lanes = Vector::size;
  static constexpr std::int64_t max_rows = vector_registers == 32 ? 8 : 6,
                                max_vectors = vector_registers == 32 ? 16 : 8;

  // The prefetch to L1 runs 2 KiB of a tile's B ahead: consecutive rows are in different pages,
  // where the hardware does not prefetch.
  static constexpr std::int64_t vectors_ahead = 512 / lanes;

  // Accumulators and, for each row of B, one more vector fit the registers.
  static constexpr std::int64_t most_vectors(std::int64_t rows) {
    return std::min(max_vectors, (vector_registers == 32 ? 25 : 12) / rows);
  }

  using Tile = void (*)(const StreamOperands& o, const float* a, const float* b, std::int64_t k,
                        float* c, std::int64_t width);

  // I runs over the accumulators of one turn, row by row; V over the vectors of a row of B; T over
  // the turns: step l of K adds to the accumulators of turn l mod turns.
  template <std::int64_t Rows, std::int64_t Vectors, bool partial, std::size_t... I,
            std::size_t... V, std::size_t... T>
  static void multiply_tile(std::index_sequence<I...>, std::index_sequence<V...>,
                            std::index_sequence<T...>, const StreamOperands& o, const float* a,
                            const float* b, std::int64_t k, float* c, std::int64_t width) {
    constexpr std::size_t count = sizeof...(I);
    constexpr std::int64_t turns = sizeof...(T);
    const std::int64_t rest = width - (Vectors - 1) * lanes;  // columns of the last vector
    const std::int64_t ahead = ceil_div(vectors_ahead, Vectors) * o.b_row;
    Vector acc[count * sizeof...(T)];
    const auto clear = [&](auto turn) __attribute__((always_inline)) {
      ((acc[turn * count + I] = Vector(0.0F)), ...);
    };
    (clear(std::integral_constant<std::size_t, T>{}), ...);
    const auto load = [&](const float* row, auto v) __attribute__((always_inline)) {
      if constexpr (partial && v + 1 == Vectors) return load_partial(row + v * lanes, rest);
      return Vector::load_unaligned(row + v * lanes);
    };
    const auto step = [&](std::int64_t l, auto turn) __attribute__((always_inline)) {
      const float* row = b + l * o.b_row;
      const float* a_l = a + l * o.a_step;
      (__builtin_prefetch(row + ahead + V * lanes), ...);
      const Vector b_l[] = {load(row, std::integral_constant<std::int64_t, V>{})...};
      ((acc[turn * count + I] =
            xsimd::fma(Vector(a_l[static_cast<std::int64_t>(I / Vectors) * o.a_row]),
                       b_l[I % Vectors], acc[turn * count + I])),
       ...);
    };
    std::int64_t l = 0;
    for (; l + turns <= k; l += turns)
      (step(l + static_cast<std::int64_t>(T), std::integral_constant<std::size_t, T>{}), ...);
    for (; l < k; ++l) step(l, std::integral_constant<std::size_t, 0>{});
    const auto add_turn = [&](auto turn) __attribute__((always_inline)) {
      if constexpr (turn > 0) ((acc[I] += acc[turn * count + I]), ...);
    };
    (add_turn(std::integral_constant<std::size_t, T>{}), ...);
    if (o.c_column == 1) {
      const auto store = [&](auto i) __attribute__((always_inline)) {
        constexpr std::int64_t row = i / Vectors, v = i % Vectors;
        float* at = c + row * o.c_row + v * lanes;
        if constexpr (partial && v + 1 == Vectors)
          store_partial(at, acc[i], rest);
        else
          acc[i].store_unaligned(at);
      };
      (store(std::integral_constant<std::size_t, I>{}), ...);
    } else {
      alignas(64) float block[count * lanes];
      (acc[I].store_aligned(block + I * lanes), ...);
      transpose(block, Vectors * lanes, c, o.c_column, Rows, width);
    }
  }

  template <std::int64_t Rows, std::int64_t Vectors>
  static void tile(const StreamOperands& o, const float* a, const float* b, std::int64_t k,
                   float* c, std::int64_t width) {
    // 8 independent multiply-adds hide the latency of 4 cycles on two units.
    constexpr std::int64_t turns = std::clamp<std::int64_t>(8 / (Rows * Vectors), 1, 4);
    constexpr auto accumulators = std::make_index_sequence<std::size_t{Rows * Vectors}>{};
    constexpr auto row = std::make_index_sequence<std::size_t{Vectors}>{};
    constexpr auto all_turns = std::make_index_sequence<std::size_t{turns}>{};
    if (width == Vectors * lanes)
      multiply_tile<Rows, Vectors, false>(accumulators, row, all_turns, o, a, b, k, c, width);
    else
      multiply_tile<Rows, Vectors, true>(accumulators, row, all_turns, o, a, b, k, c, width);
  }

  template <std::size_t T>
  static constexpr Tile tile_at() {
    constexpr std::int64_t rows = T / max_vectors + 1, vectors = T % max_vectors + 1;
    if constexpr (vectors <= most_vectors(rows))
      return &tile<rows, vectors>;
    else
      return nullptr;
  }
  template <std::size_t... T>
  static constexpr std::array<Tile, sizeof...(T)> all_tiles(std::index_sequence<T...>) {
    return {tile_at<T>()...};
  }
  static Tile tile_of(std::int64_t rows, std::int64_t vectors) {
    static constexpr auto tiles =
        all_tiles(std::make_index_sequence<static_cast<std::size_t>(max_rows * max_vectors)>{});
    return tiles[static_cast<std::size_t>((rows - 1) * max_vectors + vectors - 1)];
  }
};

}  // namespace stepladder::matmul::inline STEPLADDER_ISA
