// The loops of `blocked` on vectors, for simd, openmp and pthread*, and their division by threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <xsimd/xsimd.hpp>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/partial_vector.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul::inline STEPLADDER_ISA {

class SimdBlock {
 public:
  // Floats of workspace that multiply() needs.
  static std::int64_t workspace(const Problem& p) {
    return (p.transpose_a ? row_group * a_stride : 0) + (p.transpose_b ? block_k * b_stride : 0);
  }

  // c[rows, columns] = op(A)[rows, k] · op(B)[k, columns], or its part in the triangle
  static void multiply(const Problem& p, const Operands& o, Range rows, Range columns,
                       float* workspace) {
    float* a_group = workspace;  // [row_group, a_stride]
    float* b_block = workspace + (p.transpose_a ? row_group * a_stride : 0);  // [block_k, b_stride]
    if (p.triangle) columns.end = std::min(columns.end, rows.end);
    for (std::int64_t j = columns.begin; j < columns.end; j += block_n)
      for (std::int64_t l = 0; l < p.k; l += block_k) {
        const std::int64_t n = std::min(block_n, columns.end - j);
        const std::int64_t k = std::min(block_k, p.k - l);
        if (p.transpose_b) transpose(o.b + j * p.k + l, p.k, b_block, b_stride, n, k);
        const float* b = p.transpose_b ? b_block : o.b + l * p.n + j;  // [k, n]
        const std::int64_t b_step = p.transpose_b ? b_stride : p.n;
        for (std::int64_t group = rows.begin; group < rows.end; group += row_group) {
          const std::int64_t height = std::min(row_group, rows.end - group);
          if (p.transpose_a) transpose(o.a + l * p.m + group, p.m, a_group, a_stride, k, height);
          for (std::int64_t i = group; i < group + height; ++i) {
            const float* a = p.transpose_a ? a_group + (i - group) * a_stride : o.a + i * p.k + l;
            const std::int64_t width = std::min(n, columns_of_row(p, i) - j);
            if (width > 0) add_products(a, b, b_step, o.c + i * p.n + j, width, k, l == 0);
          }
        }
      }
  }

 private:
  static constexpr std::int64_t lanes = Vector::size;
  static constexpr std::int64_t block_k = 128, block_n = 512;  // of op(B), as in `blocked`
  static constexpr std::int64_t row_group = line_floats;       // rows of op(A) transposed together
  // Between rows of the transposed blocks. Rows a power of two apart would all map to the same two
  // sets of L1; one more cache line avoids that.
  static constexpr std::int64_t a_stride = block_k + line_floats;
  static constexpr std::int64_t b_stride = block_n + line_floats;

  // c[n] (+)= a[k] · b[k, n]; `first` overwrites C. Not inlined: together with the loops around it,
  // it would need more registers than there are for the pointers of the inner loop.
  [[gnu::noinline]] static void add_products(const float* a, const float* b, std::int64_t b_step,
                                             float* c, std::int64_t n, std::int64_t k, bool first) {
    // In a narrow C each load would wait for the store of the same few vectors, so add_column keeps
    // them in registers.
    const std::int64_t whole = n < 4 * lanes ? 0 : n / lanes * lanes;
    if (first) std::fill_n(c, n, 0.0f);
    std::int64_t l = 0;
    // Each vector of C is loaded and stored once for four rows of B.
    for (; l + 4 <= k; l += 4) {
      const Vector a0(a[l]), a1(a[l + 1]), a2(a[l + 2]), a3(a[l + 3]);
      const float *b0 = b + l * b_step, *b1 = b0 + b_step, *b2 = b1 + b_step, *b3 = b2 + b_step;
      for (std::int64_t j = 0; j < whole; j += lanes) {
        Vector acc = Vector::load_unaligned(c + j);
        acc = xsimd::fma(a0, Vector::load_unaligned(b0 + j), acc);
        acc = xsimd::fma(a1, Vector::load_unaligned(b1 + j), acc);
        acc = xsimd::fma(a2, Vector::load_unaligned(b2 + j), acc);
        acc = xsimd::fma(a3, Vector::load_unaligned(b3 + j), acc);
        acc.store_unaligned(c + j);
      }
    }
    for (; l < k; ++l)
      for (std::int64_t j = 0; j < whole; j += lanes)
        xsimd::fma(Vector(a[l]), Vector::load_unaligned(b + l * b_step + j),
                   Vector::load_unaligned(c + j))
            .store_unaligned(c + j);
    for (std::int64_t j = whole; j < n; j += lanes)
      add_column(a, b + j, b_step, c + j, std::min(lanes, n - j), k);
  }

  // Adds up to one vector of columns, with four accumulators in registers.
  static void add_column(const float* a, const float* b, std::int64_t b_step, float* c,
                         std::int64_t count, std::int64_t k) {
    Vector acc0 = load_partial(c, count), acc1(0.0f), acc2(0.0f), acc3(0.0f);
    std::int64_t l = 0;
    for (; l + 4 <= k; l += 4, b += 4 * b_step) {
      acc0 = xsimd::fma(Vector(a[l]), load_partial(b, count), acc0);
      acc1 = xsimd::fma(Vector(a[l + 1]), load_partial(b + b_step, count), acc1);
      acc2 = xsimd::fma(Vector(a[l + 2]), load_partial(b + 2 * b_step, count), acc2);
      acc3 = xsimd::fma(Vector(a[l + 3]), load_partial(b + 3 * b_step, count), acc3);
    }
    for (; l < k; ++l, b += b_step) acc0 = xsimd::fma(Vector(a[l]), load_partial(b, count), acc0);
    store_partial(c, (acc0 + acc1) + (acc2 + acc3), count);
  }
};

// Whether threads divide the columns of C: only where there are few rows. Loops without a register
// tile load and store a row of C many times: when two threads work on parts of the same rows, the
// prefetcher of one core fetches lines that the other writes.
inline bool divides_columns(const Problem& p, int threads) {
  constexpr int few_rows = 8;  // of a thread
  return p.n > p.m && p.m < few_rows * threads;
}

// C divided among threads: each computes its part with a workspace of its own.
class SimdParts {
 public:
  SimdParts(const Problem& problem, int threads)
      : problem_(problem),
        threads_(threads),
        workspace_size_(SimdBlock::workspace(problem)),
        workspace_(aligned_array<float>(workspace_size_ * threads)) {}

  void compute(const Operands& operands, int thread) const {
    const Problem& p = problem_;
    Range rows{0, p.m}, columns{0, p.n};
    if (divides_columns(p, threads_))
      columns = partition(p.n, threads_, thread, line_floats);
    else
      rows = partition(p.m, threads_, thread);
    SimdBlock::multiply(p, operands, rows, columns, workspace_.get() + thread * workspace_size_);
  }

 private:
  Problem problem_;
  int threads_;
  std::int64_t workspace_size_;    // floats per thread
  AlignedArray<float> workspace_;  // [threads, workspace_size]
};

}  // namespace stepladder::matmul::inline STEPLADDER_ISA
