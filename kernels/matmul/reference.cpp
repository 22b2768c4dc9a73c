#include <algorithm>
#include <cmath>

#include "kernels/common/add_products.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {

void reference(const Problem& p, const Operands& o, double* c, double* magnitude) {
#pragma omp parallel for
  for (std::int64_t i = 0; i < p.m; ++i) {
    double* c_row = c + i * p.n;
    double* magnitude_row = magnitude + i * p.n;
    std::fill_n(c_row, p.n, 0.0);
    std::fill_n(magnitude_row, p.n, 0.0);
    const std::int64_t columns = columns_of_row(p, i);
    const float* a_row = p.transpose_a ? o.a + i : o.a + i * p.k;  // op(A)[i, 0]
    const std::int64_t a_step = p.transpose_a ? p.m : 1;
    if (!p.transpose_b)
      for (std::int64_t l = 0; l < p.k; ++l)
        add_products(columns, c_row, magnitude_row, 1, o.b + l * p.n, 1, a_row + l * a_step, 0);
    else
      for (std::int64_t j = 0; j < columns; ++j)
        add_products(p.k, c_row + j, magnitude_row + j, 0, a_row, a_step, o.b + j * p.k, 1);
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
