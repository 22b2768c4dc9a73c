#include <algorithm>
#include <cmath>

#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {

void reference(const Problem& p, const float* a, const float* b, const float* bias, double* c,
               double* magnitude) {
#pragma omp parallel for
  for (std::int64_t i = 0; i < p.m; ++i) {
    double* c_row = c + i * p.n;
    double* magnitude_row = magnitude + i * p.n;
    std::fill_n(c_row, p.n, 0.0);
    std::fill_n(magnitude_row, p.n, 0.0);
    for (std::int64_t l = 0; l < p.k; ++l) {
      const double a_il = p.transpose_a ? a[l * p.m + i] : a[i * p.k + l];
      const float* b_l = p.transpose_b ? b + l : b + l * p.n;  // op(B)[l, 0]
      const std::int64_t step = p.transpose_b ? p.k : 1;
      for (std::int64_t j = 0; j < p.n; ++j) {
        const double product = a_il * b_l[j * step];
        c_row[j] += product;
        magnitude_row[j] += std::abs(product);
      }
    }
    if (p.epilogue == Epilogue::none) continue;
    for (std::int64_t j = 0; j < p.n; ++j) {
      c_row[j] += bias[j];
      magnitude_row[j] += std::abs(double{bias[j]});
      if (p.epilogue == Epilogue::bias_relu) c_row[j] = std::max(0.0, c_row[j]);
    }
  }
}

}  // namespace stepladder::matmul
