// The definition: each element of C is the dot product of a row of op(A) and a column of op(B). In
// a row-major B the column has a stride of n floats: each product fetches a new cache line.
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {
namespace {

void multiply(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < columns_of_row(p, i); ++j) {
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t l = 0; l < p.k; ++l) {
        const float a = p.transpose_a ? o.a[l * p.m + i] : o.a[i * p.k + l];
        const float b = p.transpose_b ? o.b[j * p.k + l] : o.b[l * p.n + j];
        sum += a * b;
      }
      o.c[i * p.n + j] = sum;
    }
}

constexpr VariantInfo info{
    .name = "serial_ijk",
    .technique = Technique::serial,
    .adds = "the definition: one dot product per element of C",
    .triangle = true,
};

const Registration registration{info, plan_of<multiply>};

}  // namespace
}  // namespace stepladder::matmul
