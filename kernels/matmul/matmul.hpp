// matmul: C = op(A) op(B), the product of a fully connected layer. All matrices are row-major.
//
//   forward            y[batch, out] =  x[batch, in]  ·  w[in, out]       transpose none
//   backward_data     dx[batch, in]  = dy[batch, out] ·  w[in, out]ᵀ      transpose b
//   backward_weights  dw[in, out]    =  x[batch, in]ᵀ · dy[batch, out]    transpose a
//
// A problem may have an epilogue, the elementwise operations that follow in a network. Only
// variants with VariantInfo::epilogue support it, and only CUDA variants support relu_gradient.
//
//   bias            C = op(A) op(B) + bias, where bias[j] is added to column j
//   bias_relu       C = max(0, op(A) op(B) + bias)
//   relu_gradient   C = y > 0 ? op(A) op(B) : 0, the gradient through the ReLU whose output is y
//
// Over several ranks (MPI processes) the matrices are distributed: each rank has one block of A, of
// B and of C before a run, and its block of C is complete after it. It has no other element of
// them. kernels/matmul/distribution.hpp says which blocks.
//
// A problem may be of a lower triangle, as the scores of causal attention are: C is square, only
// C[i, j] with j <= i is computed, and the elements above the diagonal are not written. Only
// variants with VariantInfo::triangle support it.
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
  bool triangle = false;  // m == n, no epilogue; C[i, j] for j <= i alone
  int ranks = 1;          // more than one: only variants with .over_ranks
};

// The elements of row i of C that are computed are the first so many.
inline std::int64_t columns_of_row(const Problem& p, std::int64_t i) {
  return p.triangle ? i + 1 : p.n;
}

// Over several ranks a, b and c are the blocks of this rank, row-major and without gaps.
struct Operands {
  const float* a;               // [m, k], or [k, m] when transpose_a
  const float* b;               // [k, n], or [n, k] when transpose_b
  float* c;                     // [m, n], overwritten
  const float* bias = nullptr;  // [n]; null without a bias
  const float* y = nullptr;     // [m, n]; null unless relu_gradient
};

struct Matmul {
  static constexpr const char* name = "matmul";
  static constexpr const char* plain_layout = "row_major";
  using Problem = matmul::Problem;
  using Operands = matmul::Operands;
  // Throws Unsupported if the variant does not support the problem's epilogue or its triangle, or
  // is not for as many processes as the problem: one, or several.
  static void require(const Problem& problem, const VariantInfo& info);
};

using Plan = stepladder::Plan<Operands>;
using Registration = stepladder::Registration<Matmul>;

// "forward", "backward_data", "backward_weights" or "both_transposed", followed by the epilogue:
// "forward_bias_relu", "backward_data_relu_gradient". "triangle" for all triangles.
std::string direction(const Problem& problem);
// m x n x k, transposes and epilogue: "64x512x784 nt bias relu", "256x256x64 nt triangle".
std::string shape(const Problem& problem);
// FLOPs and bytes are those of one process, on any number of ranks: 2 k for each element of C that
// is computed, 2 m n k, or k n (n + 1) of a triangle; m n for each of bias, ReLU and gradient.
double flops(const Problem& problem);
double bytes_read(const Problem& problem);     // A, B, the bias and y once
double bytes_written(const Problem& problem);  // C, or its triangle, once

// The reference in double: c[m, n], and magnitude[m, n] = |op(A)| |op(B)|. For any order of
// summation |error| <= gamma(k + 2) magnitude (Higham, Accuracy and Stability of Numerical
// Algorithms, 2nd ed., section 3.1). A bias is one more term, max(0, x) does not increase the
// error, and elements that the gradient of a ReLU sets to 0 have none. Above the diagonal of a
// triangle both are 0.
void reference(const Problem& problem, const Operands& operands, double* c, double* magnitude);

}  // namespace stepladder::matmul
