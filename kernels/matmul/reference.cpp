#include <algorithm>
#include <cmath>

#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {

void reference(const Problem& p, const Operands& o, double* c, double* magnitude) {
#pragma omp parallel for
  for (std::int64_t i = 0; i < p.m; ++i) {
    double* c_row = c + i * p.n;
    double* magnitude_row = magnitude + i * p.n;
    std::fill_n(c_row, p.n, 0.0);
    std::fill_n(magnitude_row, p.n, 0.0);
    for (std::int64_t l = 0; l < p.k; ++l) {
      const double a_il = p.transpose_a ? o.a[l * p.m + i] : o.a[i * p.k + l];
      const float* b_l = p.transpose_b ? o.b + l : o.b + l * p.n;  // op(B)[l, 0]
      const std::int64_t step = p.transpose_b ? p.k : 1;
      for (std::int64_t j = 0; j < columns_of_row(p, i); ++j) {
        const double product = a_il * b_l[j * step];
        c_row[j] += product;
        magnitude_row[j] += std::abs(product);
      }
    }
    for (std::int64_t j = 0; j < p.n; ++j) {
      if (has_bias(p.epilogue)) {
        c_row[j] += o.bias[j];
        magnitude_row[j] += std::abs(double{o.bias[j]});
      }
      if (p.epilogue == Epilogue::bias_relu) c_row[j] = std::max(0.0, c_row[j]);
      if (p.epilogue == Epilogue::relu_gradient && !(o.y[i * p.n + j] > 0))
        c_row[j] = magnitude_row[j] = 0;
    }
  }
}

}  // namespace stepladder::matmul
