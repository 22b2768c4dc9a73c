// The micro-kernel on AMX: 2 x 2 tiles of 16 x 16 sums in tile registers, and an instruction for
// each product of a tile of A and one of B: 16 x 16 x 32 multiply-adds of bf16, or twice as many of
// int8. A step loads four tiles for four products.
#pragma once

#include "kernels/low_precision/cpu/narrow_rows.hpp"

#define STEPLADDER_AMX_TARGET \
  __attribute__((target(      \
      "amx-tile,amx-int8,amx-bf16,avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx512vnni")))

namespace stepladder::low_precision {

class AmxKernel {
 public:
  static constexpr std::int64_t row_tiles = 2, column_tiles = 2;
  static constexpr std::int64_t bytes_of_block = 1 << 20;  // half of an L2
  static constexpr std::int64_t most_steps = 16;           // 32 KiB of A, in L1

  // Sets the tile registers of this thread.
  STEPLADDER_AMX_TARGET AmxKernel() {
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
  STEPLADDER_AMX_TARGET ~AmxKernel() { _tile_release(); }
  AmxKernel(const AmxKernel&) = delete;
  AmxKernel& operator=(const AmxKernel&) = delete;

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
  // Tile registers: 0 to 3 the sums, in rows; 4 and 5 of A, 6 and 7 of B.
  template <class Dot, int height, int width>
  STEPLADDER_AMX_TARGET static void tiles(const Part& part) {
    __asm__ volatile("" ::: "memory");  // GCC's intrinsics do not say that they read memory
    std::byte* kept = part.sums;
    if (part.is_first) {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
    } else {
      _tile_loadd(0, kept, vector_bytes);
      if constexpr (width > 1) _tile_loadd(1, kept + tile_bytes, vector_bytes);
      if constexpr (height > 1) _tile_loadd(2, kept + 2 * tile_bytes, vector_bytes);
      if constexpr (height > 1 && width > 1) _tile_loadd(3, kept + 3 * tile_bytes, vector_bytes);
    }
    const std::byte *a = part.a, *b = part.b;
    for (std::int64_t s = 0; s < part.steps; ++s, a += tile_bytes, b += tile_bytes) {
      _tile_loadd(4, a, vector_bytes);
      _tile_loadd(6, b, vector_bytes);
      add<Dot, 0>();
      if constexpr (width > 1) {
        _tile_loadd(7, b + part.b_column, vector_bytes);
        add<Dot, 1>();
      }
      if constexpr (height > 1) {
        _tile_loadd(5, a + part.a_row, vector_bytes);
        add<Dot, 2>();
        if constexpr (width > 1) add<Dot, 3>();
      }
    }
    // Whole tiles of bf16 go to C directly.
    const bool is_direct = part.is_last && std::is_same_v<Dot, DotBf16> &&
                           part.rows == height * tile_side && part.columns == width * tile_side;
    alignas(64) std::byte result[4 * tile_bytes];
    std::byte* to = is_direct ? reinterpret_cast<std::byte*>(part.c) : part.is_last ? result : kept;
    const std::int64_t row = is_direct ? part.ldc * 4 : vector_bytes,
                       right = is_direct ? vector_bytes : tile_bytes,
                       below = is_direct ? row * tile_side : 2 * tile_bytes;
    _tile_stored(0, to, row);
    if constexpr (width > 1) _tile_stored(1, to + right, row);
    if constexpr (height > 1) _tile_stored(2, to + below, row);
    if constexpr (height > 1 && width > 1) _tile_stored(3, to + below + right, row);
    if (part.is_last && !is_direct) store<Dot>(part, result);
  }

  template <class Dot, int sums>
  STEPLADDER_AMX_TARGET __attribute__((always_inline)) static inline void add() {
    if constexpr (std::is_same_v<Dot, DotInt8>) {
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
        _mm512_mask_storeu_ps(part.c + i * part.ldc + j, first_lanes(part.columns - j),
                              results_of(sums, part.k, Dot{}));
      }
  }
};

// Throws Unsupported unless the CPU multiplies the format by AMX.
template <bool prepacks = false>
std::unique_ptr<Plan> amx_plan(const Problem& problem, const Resources& resources) {
  if (problem.format != Format::bf16 && problem.format != Format::int8)
    throw Unsupported(std::string("AMX multiplies bf16 and int8, not ") + name_of(problem.format));
  require(problem.format == Format::bf16 ? Extension::amx_bf16 : Extension::amx_int8);
  require_dot_products(problem.format);  // they pack and store
  if (problem.format == Format::bf16)
    return std::make_unique<PackedProduct<DotBf16, AmxKernel, NarrowRows<DotBf16>, prepacks>>(
        NarrowRows<DotBf16>(problem), resources.threads);
  return std::make_unique<PackedProduct<DotInt8, AmxKernel, NarrowRows<DotInt8>, prepacks>>(
      NarrowRows<DotInt8>(problem), resources.threads);
}

}  // namespace stepladder::low_precision
