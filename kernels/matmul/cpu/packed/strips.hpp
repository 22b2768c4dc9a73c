// Strips of rows of op(A), each as high as a tile, in place or packed.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/cpu/partition.hpp"

namespace stepladder::matmul::inline STEPLADDER_ISA {

// Element (i, l) of a strip at a + i · row + l · step.
struct Strip {
  const float* a;
  std::int64_t row, step;
};

// Rows divided into `count` strips of nearly equal heights.
struct Strips {
  Range rows;
  std::int64_t count;

  Range rows_of(std::int64_t s) const {
    const Range strip = partition(rows.end - rows.begin, count, s);
    return {rows.begin + strip.begin, rows.begin + strip.end};
  }
};

// Packs the strips s in `packed` of a transposed a [steps, lda], each into [steps, tile_rows], one
// after the other. A cache line of a belongs to several strips, and is read for all of them at
// once: a few steps at a time, which stay in L1.
template <std::int64_t tile_rows>
void pack_strips(const float* a, std::int64_t lda, std::int64_t steps, const Strips& strips,
                 Range packed, float* to) {
  constexpr std::int64_t steps_at_a_time = 8;
  for (std::int64_t begin = 0; begin < steps; begin += steps_at_a_time) {
    const std::int64_t end = std::min(steps, begin + steps_at_a_time);
    for (std::int64_t s = packed.begin; s < packed.end; ++s) {
      const Range rows = strips.rows_of(s);
      const std::int64_t height = rows.end - rows.begin;
      float* strip = to + (s - packed.begin) * steps * tile_rows;
      for (std::int64_t l = begin; l < end; ++l) {
        const float* from = a + l * lda + rows.begin;
        if (height == tile_rows)
          std::copy_n(from, tile_rows, strip + l * tile_rows);
        else
          std::copy_n(from, height, strip + l * tile_rows);
      }
    }
  }
}

}  // namespace stepladder::matmul::inline STEPLADDER_ISA
