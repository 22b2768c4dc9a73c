// How a BLAS that knows column-major matrices only computes the row-major C = op(A) op(B). Read by
// columns, row-major memory shows the transposed matrix, so the call is for Cᵀ = op(B)ᵀ op(A)ᵀ: the
// operands change places and keep their transposes.
#pragma once

#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {

// gemm(transpose_first, transpose_second, rows, columns, inner, first, first_stride, …): first is
// B, second is A; a stride is the distance of two columns in floats.
struct ColumnMajorCall {
  bool transpose_first, transpose_second;
  std::int64_t rows, columns, inner;
  const float* first;
  std::int64_t first_stride;
  const float* second;
  std::int64_t second_stride;
  float* result;
  std::int64_t result_stride;
};

inline ColumnMajorCall column_major(const Problem& p, const Operands& o) {
  return {.transpose_first = p.transpose_b,
          .transpose_second = p.transpose_a,
          .rows = p.n,
          .columns = p.m,
          .inner = p.k,
          .first = o.b,
          .first_stride = p.transpose_b ? p.k : p.n,
          .second = o.a,
          .second_stride = p.transpose_a ? p.m : p.k,
          .result = o.c,
          .result_stride = p.n};
}

}  // namespace stepladder::matmul
