// What the rungs triangle_* share: one row of a triangle as the unit of work that OpenMP hands out.
// Row i has i + 1 elements, so the last row takes n times as long as the first.
#pragma once

#include <cstdint>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/matmul/cpu/simd_block.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul::inline STEPLADDER_ISA {

class TriangleRows {
 public:
  explicit TriangleRows(const Problem& problem)
      : problem_(problem),
        copies_b_(problem.transpose_b),
        rows_of_b_(aligned_array<float>(problem.transpose_b ? problem.k * problem.n : 0)) {
    if (!problem.triangle) throw Unsupported("for the rows of a triangle; openmp divides others");
    if (problem.transpose_a) throw Unsupported("A must not be transposed");
    problem_.transpose_b = false;
  }

  std::int64_t count() const { return problem_.m; }

  // Copies a transposed B into rows. All threads of a parallel region call it; they share the work
  // and wait for each other at its end.
  void transpose_b(const Operands& o) {
    if (!copies_b_) return;
    const Problem& p = problem_;
#pragma omp for schedule(static)
    for (std::int64_t j = 0; j < p.n; j += line_floats)
      transpose(o.b + j * p.k, p.k, rows_of_b_.get() + j, p.n, std::min(line_floats, p.n - j), p.k);
  }

  // c[i, 0 … i] = A[i, k] · op(B)[k, 0 … i]
  void multiply_row(const Operands& o, std::int64_t i) const {
    Operands rows = o;
    if (copies_b_) rows.b = rows_of_b_.get();
    SimdBlock::multiply(problem_, rows, {i, i + 1}, {0, i + 1}, nullptr);
  }

 private:
  Problem problem_;                // with B in rows
  bool copies_b_;                  // B is transposed
  AlignedArray<float> rows_of_b_;  // [k, n] if it is copied
};

// multiply_rows(rows, operands): each thread of the parallel region calls it and computes some
// rows.
template <auto multiply_rows>
class TrianglePlan final : public Plan {
 public:
  TrianglePlan(const Problem& problem, const Resources& resources)
      : rows_(problem), threads_(resources.threads) {}

  void run(const Operands& o) override {
#pragma omp parallel num_threads(threads_)
    {
      rows_.transpose_b(o);
      multiply_rows(rows_, o);
    }
  }

 private:
  TriangleRows rows_;
  int threads_;
};

}  // namespace stepladder::matmul::inline STEPLADDER_ISA
