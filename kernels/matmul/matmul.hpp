// matmul: the weighted sum of a fully connected layer, C = op(A) op(B), all matrices row-major.
//
//   forward          y[batch, out] = x[batch, in] · w[in, out]          transpose none
//   input_gradient   dx[batch, in] = dy[batch, out] · w[in, out]ᵀ       transpose b
//   weight_gradient  dw[in, out]   = x[batch, in]ᵀ · dy[batch, out]     transpose a
#pragma once

#include <cstdint>
#include <string>

#include "kernels/common/variant.hpp"

namespace stepladder::matmul {

struct Problem {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
};

struct Operands {
  const float* a;  // [m, k], or [k, m] when transpose_a
  const float* b;  // [k, n], or [n, k] when transpose_b
  float* c;        // [m, n], written; its former content does not count
};

struct Matmul {
  static constexpr const char* name = "matmul";
  static constexpr const char* plain_layout = "row_major";
  using Problem = matmul::Problem;
  using Operands = matmul::Operands;
};

using Plan = stepladder::Plan<Operands>;
using Registration = stepladder::Registration<Matmul>;

std::string direction(
    const Problem& problem);  // forward, input_gradient, weight_gradient, both_transposed
std::string shape(const Problem& problem);     // "64x512x784 nt": m x n x k and the transposes
double flops(const Problem& problem);          // 2 m n k
double bytes_read(const Problem& problem);     // A and B once
double bytes_written(const Problem& problem);  // C once

// The truth, in double: c[m, n], and magnitude[m, n] = |op(A)| |op(B)|, by which the rounding error
// of any order of summation is bounded: |error| <= gamma(k + 2) magnitude (Higham, Accuracy and
// Stability of Numerical Algorithms, 2nd ed., section 3.5).
void reference(const Problem& problem, const float* a, const float* b, double* c,
               double* magnitude);

}  // namespace stepladder::matmul
