// The arithmetic of the rungs simd, openmp and pthread: blocked's loops on whole vectors of
// columns. A template on Arch, because each of its files is built once per ISA.
#pragma once

#include <algorithm>
#include <cstdint>
#include <xsimd/xsimd.hpp>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/partial_vector.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/matmul/matmul.hpp"
#include "kernels/common/cpu/partition.hpp"

namespace stepladder::matmul::inline STEPLADDER_ISA {

class SimdBlock {
 public:
  // Floats of workspace that multiply() takes.
  static std::int64_t workspace(const Problem& p) {
    return (p.transpose_a ? row_group * depth_step : 0) +
           (p.transpose_b ? block_depth * width_step : 0);
  }

  // c[rows, columns] = op(A)[rows, k] · op(B)[k, columns]
  static void multiply(const Problem& p, const Operands& o, Range rows, Range columns,
                       float* workspace) {
    float* a_group = workspace;  // [row_group, depth_step]
    float* b_block =
        workspace + (p.transpose_a ? row_group * depth_step : 0);  // [depth, width_step]
    for (std::int64_t j = columns.begin; j < columns.end; j += block_width)
      for (std::int64_t l = 0; l < p.k; l += block_depth) {
        const std::int64_t width = std::min(block_width, columns.end - j);
        const std::int64_t depth = std::min(block_depth, p.k - l);
        if (p.transpose_b)
          transpose(o.b + j * p.k + l, p.k, b_block, width_step, width, depth);
        const float* b = p.transpose_b ? b_block : o.b + l * p.n + j;  // [depth, width]
        const std::int64_t b_step = p.transpose_b ? width_step : p.n;
        for (std::int64_t group = rows.begin; group < rows.end; group += row_group) {
          const std::int64_t height = std::min(row_group, rows.end - group);
          if (p.transpose_a)
            transpose(o.a + l * p.m + group, p.m, a_group, depth_step, depth, height);
          for (std::int64_t i = group; i < group + height; ++i) {
            const float* a = p.transpose_a ? a_group + (i - group) * depth_step : o.a + i * p.k + l;
            add_products(a, b, b_step, o.c + i * p.n + j, width, depth, l == 0);
          }
        }
      }
  }

 private:
  static constexpr std::int64_t lanes = Vector::size;
  static constexpr std::int64_t block_depth = 128;  // along k
  static constexpr std::int64_t block_width = 512;  // along n
  static constexpr std::int64_t row_group = 16;  // rows of A that are turned together: a cache line
  // Steps between turned rows: a line more than a power of two, or they would all fall into the
  // same two sets of the first-level cache.
  static constexpr std::int64_t depth_step = block_depth + 16;
  static constexpr std::int64_t width_step = block_width + 16;

  // c[width] (+)= a[depth] · b[depth, width]; the first products overwrite C. Not inlined: with the
  // loops around it there are not enough registers for the pointers of the inner loop.
  [[gnu::noinline]] static void add_products(const float* a, const float* b, std::int64_t b_step,
                                             float* c, std::int64_t width, std::int64_t depth,
                                             bool first) {
    // A narrow C would have each of its few vectors wait for its own store, so it stays in
    // registers.
    const std::int64_t whole = width < 4 * lanes ? 0 : width / lanes * lanes;
    if (first) std::fill_n(c, width, 0.0f);
    std::int64_t l = 0;
    // Each vector of C is loaded and stored once for four rows of B.
    for (; l + 4 <= depth; l += 4) {
      const Vector a0(a[l]), a1(a[l + 1]), a2(a[l + 2]), a3(a[l + 3]);
      const float *b0 = b + l * b_step, *b1 = b0 + b_step, *b2 = b1 + b_step, *b3 = b2 + b_step;
      for (std::int64_t j = 0; j < whole; j += lanes) {
        Vector sum = Vector::load_unaligned(c + j);
        sum = xsimd::fma(a0, Vector::load_unaligned(b0 + j), sum);
        sum = xsimd::fma(a1, Vector::load_unaligned(b1 + j), sum);
        sum = xsimd::fma(a2, Vector::load_unaligned(b2 + j), sum);
        sum = xsimd::fma(a3, Vector::load_unaligned(b3 + j), sum);
        sum.store_unaligned(c + j);
      }
    }
    for (; l < depth; ++l)
      for (std::int64_t j = 0; j < whole; j += lanes)
        xsimd::fma(Vector(a[l]), Vector::load_unaligned(b + l * b_step + j),
                   Vector::load_unaligned(c + j))
            .store_unaligned(c + j);
    for (std::int64_t j = whole; j < width; j += lanes)
      add_column(a, b + j, b_step, c + j, std::min(lanes, width - j), depth);
  }

  // The same for one vector of columns, or a part of one: four sums stay in registers along k.
  static void add_column(const float* a, const float* b, std::int64_t b_step, float* c,
                         std::int64_t count, std::int64_t depth) {
    Vector sum0 = load_partial(c, count), sum1(0.0f), sum2(0.0f), sum3(0.0f);
    std::int64_t l = 0;
    for (; l + 4 <= depth; l += 4, b += 4 * b_step) {
      sum0 = xsimd::fma(Vector(a[l]), load_partial(b, count), sum0);
      sum1 = xsimd::fma(Vector(a[l + 1]), load_partial(b + b_step, count), sum1);
      sum2 = xsimd::fma(Vector(a[l + 2]), load_partial(b + 2 * b_step, count), sum2);
      sum3 = xsimd::fma(Vector(a[l + 3]), load_partial(b + 3 * b_step, count), sum3);
    }
    for (; l < depth; ++l, b += b_step)
      sum0 = xsimd::fma(Vector(a[l]), load_partial(b, count), sum0);
    store_partial(c, (sum0 + sum1) + (sum2 + sum3), count);
  }
};

}  // namespace stepladder::matmul::inline STEPLADDER_ISA
