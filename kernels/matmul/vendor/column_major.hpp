// Row-major C = op(A) op(B) with a column-major BLAS. Row-major memory read by columns is the
// transposed matrix, so the call computes Cᵀ = op(B)ᵀ op(A)ᵀ: the operands change places and keep
// their transposes.
#pragma once

#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {

// The arguments of gemm as in BLAS: `a` is the problem's B, `b` is its A.
struct ColumnMajorCall {
  bool transpose_a, transpose_b;
  std::int64_t m, n, k;
  const float* a;
  std::int64_t lda;
  const float* b;
  std::int64_t ldb;
  float* c;
  std::int64_t ldc;
};

inline ColumnMajorCall column_major(const Problem& p, const Operands& o) {
  return {.transpose_a = p.transpose_b,
          .transpose_b = p.transpose_a,
          .m = p.n,
          .n = p.m,
          .k = p.k,
          .a = o.b,
          .lda = p.transpose_b ? p.k : p.n,
          .b = o.a,
          .ldb = p.transpose_a ? p.m : p.k,
          .c = o.c,
          .ldc = p.n};
}

}  // namespace stepladder::matmul
