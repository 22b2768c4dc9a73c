// The product of a short operand and a long one whose rows run along C: rows of B pass once, in
// memory order, and are not packed.
//
//   group of B   [depth, 2 vectors]   registers
//   block of C   [rows, columns]      L1 or L2; one load and one store per `depth` steps of K
//   A            one broadcast per row of C and step of K
//
// With 8 rows of B in registers and 16 multiply-adds per row of C, the broadcasts and the loads
// and stores of C fit beside the arithmetic.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/common/cpu/partial_vector.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/simd.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/matmul/cpu/skinny/stream_operands.hpp"

namespace stepladder::matmul::inline STEPLADDER_ISA {

class StreamRows {
 public:
  // Floats of a block of C, the workspace of each thread.
  static std::int64_t workspace(std::int64_t rows, std::int64_t columns) {
    return rows * std::min(block_columns(rows), round_up(columns, lanes));
  }

  // c(i, j) = sum over l in k of a(i, l) · b[l, j] for i < rows, j in columns.
  static void multiply(const StreamOperands& o, std::int64_t rows, Range columns, Range k,
                       float* workspace) {
    const std::int64_t most = block_columns(rows);
    for (std::int64_t j = columns.begin; j < columns.end; j += most) {
      const std::int64_t width = std::min(most, columns.end - j);
      const Block block{workspace, rows, width, round_up(width, lanes)};
      for (std::int64_t l = k.begin; l < k.end; l += depth)
        add_group(o.a + l * o.a_step, o.b + l * o.b_row + j, o, std::min(depth, k.end - l), block,
                  l > k.begin);
      float* c = o.c + j * o.c_column;
      if (o.c_column == 1)
        for (std::int64_t i = 0; i < rows; ++i)
          std::copy_n(block.c + i * block.pitch, width, c + i * o.c_row);
      else
        transpose(block.c, block.pitch, c, o.c_column, rows, width);
    }
  }

 private:
  static constexpr std::int64_t lanes = Vector::size;
  static constexpr std::int64_t depth = vector_registers == 32 ? 8 : 4;  // steps of K in registers

  struct Block {
    float* c;
    std::int64_t rows, columns, pitch;  // pitch: whole vectors, so that rows are aligned
  };

  // 16 KiB of C, half of an L1. With at most 16 rows of C that is 1 KiB or more of each row of B,
  // so that the next group of rows is prefetched early enough.
  static std::int64_t block_columns(std::int64_t rows) {
    constexpr std::int64_t block_floats = 4096;
    return block_floats / rows / lanes * lanes;
  }

  // Adds `steps` <= depth steps of K to the block, or begins it.
  static void add_group(const float* a, const float* b, const StreamOperands& o, std::int64_t steps,
                        const Block& block, bool accumulate) {
    [&]<std::size_t... D>(std::index_sequence<D...>) {
      ((steps == static_cast<std::int64_t>(D) + 1
            ? add_steps(std::make_index_sequence<D + 1>{}, a, b, o, block, accumulate)
            : void()),
       ...);
    }
    (std::make_index_sequence<static_cast<std::size_t>(depth)>{});
  }

  template <std::size_t... L>
  static void add_steps(std::index_sequence<L...> steps, const float* a, const float* b,
                        const StreamOperands& o, const Block& block, bool accumulate) {
    std::int64_t j = 0;
    for (; j + 2 * lanes <= block.columns; j += 2 * lanes)
      add_tile<2>(steps, a, b + j, o, block, block.c + j, lanes, accumulate);
    for (; j < block.columns; j += lanes)
      add_tile<1>(steps, a, b + j, o, block, block.c + j, std::min(lanes, block.columns - j),
                  accumulate);
  }

  // `width` vectors of columns, the last with `count` lanes. V runs over the vectors, L over K.
  template <std::int64_t width, std::size_t... L>
  static void add_tile(std::index_sequence<L...>, const float* a, const float* b,
                       const StreamOperands& o, const Block& block, float* c, std::int64_t count,
                       bool accumulate) {
    constexpr std::int64_t steps = sizeof...(L);
    const auto row = [&](std::size_t l) { return b + static_cast<std::int64_t>(l) * o.b_row; };
    const Vector first[] = {count == lanes ? Vector::load_unaligned(row(L))
                                           : load_partial(row(L), count)...};
    const Vector second[] = {width == 2 ? Vector::load_unaligned(row(L) + lanes) : Vector(0.0F)...};
    // Prefetches these columns of the next group: the hardware does not prefetch across pages.
    (prefetch<width>(row(L) + steps * o.b_row), ...);
    for (std::int64_t i = 0; i < block.rows; ++i, a += o.a_row, c += block.pitch) {
      Vector sum = accumulate ? Vector::load_aligned(c) : Vector(0.0F);
      ((sum = xsimd::fma(Vector(a[static_cast<std::int64_t>(L) * o.a_step]), first[L], sum)), ...);
      sum.store_aligned(c);
      if constexpr (width == 2) {
        Vector next = accumulate ? Vector::load_aligned(c + lanes) : Vector(0.0F);
        ((next = xsimd::fma(Vector(a[static_cast<std::int64_t>(L) * o.a_step]), second[L], next)),
         ...);
        next.store_aligned(c + lanes);
      }
    }
  }

  template <std::int64_t width>
  static void prefetch(const float* p) {
    constexpr std::int64_t line = 16;
    for (std::int64_t j = 0; j < width * lanes; j += line) __builtin_prefetch(p + j, 0, 2);
  }
};

}  // namespace stepladder::matmul::inline STEPLADDER_ISA
