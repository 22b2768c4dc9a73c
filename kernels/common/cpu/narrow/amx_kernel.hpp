// The micro-kernel on AMX: 2 x 2 tiles of 16 x 16 sums in tile registers, and an instruction for
// each product of a tile of A and one of B: 16 x 16 x 32 multiply-adds of bf16, or twice as many of
// int8. A step loads four tiles for four products.
#pragma once

#include <type_traits>

#include "kernels/common/cpu/narrow/packed_product.hpp"

#define STEPLADDER_AMX_TARGET \
  __attribute__((target(      \
      "amx-tile,amx-int8,amx-bf16,avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx512vnni")))
// Into a function of the same target.
#define STEPLADDER_AMX_INLINE STEPLADDER_AMX_TARGET __attribute__((always_inline)) inline

namespace stepladder::narrow {

// The tile registers of this thread, 16 rows of 64 bytes each. 0 to 3 are sums, [2][2]; 4 and 5 are
// tiles of A, 6 and 7 of B.
class AmxTiles {
 public:
  STEPLADDER_AMX_TARGET AmxTiles() {
    struct alignas(64) {
      std::uint8_t palette = 1, start_row = 0, reserved[14]{};
      std::uint16_t bytes_of_row[16]{};
      std::uint8_t rows[16]{};
    } configuration;
    for (int tile = 0; tile < 8; ++tile) {
      configuration.bytes_of_row[tile] = vector_bytes;
      configuration.rows[tile] = tile_side;
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(configuration));
  }
  STEPLADDER_AMX_TARGET ~AmxTiles() { _tile_release(); }
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;

  // GCC's intrinsics do not say that they access memory: hence barriers, also behind the stores
  // that packed A and B.
  STEPLADDER_AMX_INLINE static void zero() {
    __asm__ volatile("" ::: "memory");
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  // Of height x width tiles. from: [2][2] tiles.
  template <int height, int width>
  STEPLADDER_AMX_INLINE static void load(const std::byte* from) {
    __asm__ volatile("" ::: "memory");
    _tile_loadd(0, from, vector_bytes);
    if constexpr (width > 1) _tile_loadd(1, from + tile_bytes, vector_bytes);
    if constexpr (height > 1) _tile_loadd(2, from + 2 * tile_bytes, vector_bytes);
    if constexpr (height > 1 && width > 1) _tile_loadd(3, from + 3 * tile_bytes, vector_bytes);
  }
  // A step of k: tiles of A that are `below` bytes apart, tiles of B that are `right` bytes apart.
  template <class Dot, int height, int width>
  STEPLADDER_AMX_INLINE static void add(const std::byte* a, std::int64_t below, const std::byte* b,
                                        std::int64_t right) {
    _tile_loadd(4, a, vector_bytes);
    _tile_loadd(6, b, vector_bytes);
    add<Dot, 0>();
    if constexpr (width > 1) {
      _tile_loadd(7, b + right, vector_bytes);
      add<Dot, 1>();
    }
    if constexpr (height > 1) {
      _tile_loadd(5, a + below, vector_bytes);
      add<Dot, 2>();
      if constexpr (width > 1) add<Dot, 3>();
    }
  }
  // To rows that are `row` bytes apart, and tiles that are `right` and `below` bytes apart.
  template <int height, int width>
  STEPLADDER_AMX_INLINE static void store(std::byte* to, std::int64_t row = vector_bytes,
                                          std::int64_t right = tile_bytes,
                                          std::int64_t below = 2 * tile_bytes) {
    _tile_stored(0, to, row);
    if constexpr (width > 1) _tile_stored(1, to + right, row);
    if constexpr (height > 1) _tile_stored(2, to + below, row);
    if constexpr (height > 1 && width > 1) _tile_stored(3, to + below + right, row);
    __asm__ volatile("" ::: "memory");
  }

 private:
  template <class Dot, int sums>
  STEPLADDER_AMX_INLINE static void add() {
    if constexpr (std::is_base_of_v<DotInt8, Dot>) {
      if constexpr (sums == 0) _tile_dpbusd(0, 4, 6);
      if constexpr (sums == 1) _tile_dpbusd(1, 4, 7);
      if constexpr (sums == 2) _tile_dpbusd(2, 5, 6);
      if constexpr (sums == 3) _tile_dpbusd(3, 5, 7);
    } else {
      if constexpr (sums == 0) _tile_dpbf16ps(0, 4, 6);
      if constexpr (sums == 1) _tile_dpbf16ps(1, 4, 7);
      if constexpr (sums == 2) _tile_dpbf16ps(2, 5, 6);
      if constexpr (sums == 3) _tile_dpbf16ps(3, 5, 7);
    }
  }
};

class AmxKernel {
 public:
  static constexpr std::int64_t row_tiles = 2, column_tiles = 2;
  static constexpr std::int64_t bytes_of_block = 1 << 20;  // half of an L2
  // Of about 8 steps, at most 12: 16 to 24 KiB of A, or of B, stay in L1.
  static std::int64_t blocks_of_k(std::int64_t steps) {
    return std::max((steps + 3) / 8, std::int64_t{1});
  }

  template <class Dot>
  void multiply(const Part& part) const {
    const bool two_rows = part.rows > tile_side, two_columns = part.columns > tile_side;
    if (two_rows && two_columns)
      tiles<Dot, 2, 2>(part);
    else if (two_rows)
      tiles<Dot, 2, 1>(part);
    else if (two_columns)
      tiles<Dot, 1, 2>(part);
    else
      tiles<Dot, 1, 1>(part);
  }

 private:
  template <class Dot, int height, int width>
  STEPLADDER_AMX_TARGET static void tiles(const Part& part) {
    if (part.is_first)
      AmxTiles::zero();
    else
      AmxTiles::load<height, width>(part.sums);
    const std::byte *a = part.a, *b = part.b;
    for (std::int64_t s = 0; s < part.steps; ++s, a += tile_bytes, b += tile_bytes)
      AmxTiles::add<Dot, height, width>(a, part.a_row, b, part.b_column);
    // Whole tiles of bf16 go to C directly.
    const bool is_direct = part.is_last && std::is_same_v<Dot, DotBf16> &&
                           part.rows == height * tile_side && part.columns == width * tile_side;
    alignas(64) std::byte result[4 * tile_bytes];
    if (is_direct)
      AmxTiles::store<height, width>(reinterpret_cast<std::byte*>(part.c), part.ldc * 4,
                                     vector_bytes, part.ldc * 4 * tile_side);
    else
      AmxTiles::store<height, width>(part.is_last ? result : part.sums);
    if (part.is_last && !is_direct) store<Dot>(part, result);
  }

  // The part of the 2 x 2 tiles that C has, row by row.
  template <class Dot>
  STEPLADDER_DOT_TARGET static void store(const Part& part, const std::byte* result) {
    for (std::int64_t i = 0; i < part.rows; ++i)
      for (std::int64_t j = 0; j < part.columns; j += tile_side) {
        typename Dot::Sums sums;
        std::memcpy(&sums,
                    result + (i / tile_side * 2 + j / tile_side) * tile_bytes +
                        i % tile_side * vector_bytes,
                    sizeof(sums));
        if constexpr (std::is_same_v<Dot, DotQuantized>)
          sums = _mm512_add_epi32(sums, first_sums<Dot>(part, j));
        _mm512_mask_storeu_ps(part.c + i * part.ldc + j, first_lanes(part.columns - j),
                              results_of<Dot>(sums, part, i, j));
      }
  }

  AmxTiles tiles_;
};

}  // namespace stepladder::narrow
