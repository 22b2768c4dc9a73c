// The definition: each element of C is the dot product of a row of op(A) and a column of op(B). In
// a row-major B the column has a stride of n floats: each product fetches a new cache line.
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {
namespace {

void multiply(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < columns_of_row(p, i); ++j) {
      const float* a = o.a + (p.transpose_a ? i : i * p.k);
      const float* b = o.b + (p.transpose_b ? j * p.k : j);
      const std::int64_t a_step = p.transpose_a ? p.m : 1, b_step = p.transpose_b ? 1 : p.n;
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t l = 0; l < p.k; ++l) sum += a[l * a_step] * b[l * b_step];
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
