// matmul: the weighted sum of a fully connected layer, C = op(A) op(B), all matrices row-major.
//
//   forward          y[batch, out] = x[batch, in] · w[in, out]          transpose none
//   input_gradient   dx[batch, in] = dy[batch, out] · w[in, out]ᵀ       transpose b
//   weight_gradient  dw[in, out]   = x[batch, in]ᵀ · dy[batch, out]     transpose a
//
// A problem may have an epilogue, what a network does to C next. Only variants whose VariantInfo says
// so take such problems, and relu_gradient those of a device alone.
//
//   bias            C = op(A) op(B) + bias, the bias of column j added to all of it
//   bias_relu       C = max(0, op(A) op(B) + bias)
//   relu_gradient   C = y > 0 ? op(A) op(B) : 0: the gradient goes on through the ReLU that gave y
#pragma once

#include <cstdint>
#include <string>

#include "kernels/common/variant.hpp"

namespace stepladder::matmul {

enum class Epilogue { none, bias, bias_relu, relu_gradient };

inline bool has_bias(Epilogue epilogue) {
  return epilogue == Epilogue::bias || epilogue == Epilogue::bias_relu;
}

struct Problem {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  Epilogue epilogue = Epilogue::none;
};

struct Operands {
  const float* a;               // [m, k], or [k, m] when transpose_a
  const float* b;               // [k, n], or [n, k] when transpose_b
  float* c;                     // [m, n], written; its former content does not count
  const float* bias = nullptr;  // [n]; null where the epilogue has none
  const float* y = nullptr;     // [m, n]; null but for relu_gradient
};

struct Matmul {
  static constexpr const char* name = "matmul";
  static constexpr const char* plain_layout = "row_major";
  using Problem = matmul::Problem;
  using Operands = matmul::Operands;
  // Throws Unsupported when the problem has an epilogue that the variant does not take.
  static void require(const Problem& problem, const VariantInfo& info);
};

using Plan = stepladder::Plan<Operands>;
using Registration = stepladder::Registration<Matmul>;

// forward, input_gradient, weight_gradient, both_transposed; "forward_bias_relu" with that epilogue,
// and "input_gradient_relu_gradient"
std::string direction(const Problem& problem);
std::string shape(
    const Problem& problem);  // "64x512x784 nt bias relu": m x n x k, the transposes, the epilogue
double flops(const Problem& problem);          // 2 m n k, and m n for each of bias, ReLU, gradient
double bytes_read(const Problem& problem);     // A, B, the bias and y once
double bytes_written(const Problem& problem);  // C once

// The truth, in double: c[m, n], and magnitude[m, n] = |op(A)| |op(B)|, by which the rounding error
// of any order of summation is bounded: |error| <= gamma(k + 2) magnitude (Higham, Accuracy and
// Stability of Numerical Algorithms, 2nd ed., section 3.5). A bias is a term more, max(0, x) makes
// no error larger, and what a ReLU does not let through is 0 without any.
void reference(const Problem& problem, const Operands& operands, double* c, double* magnitude);

}  // namespace stepladder::matmul
