// Lab 3: C = A · Bᵀ. Both operands are read along rows, the compiler may use vectors, and the sum
// is slow nevertheless.
#include "plugin.h"

int stepladder_supports_matmul(const stepladder_matmul_problem* p) {
  return !p->transpose_a && p->transpose_b;
}

void stepladder_matmul(const stepladder_matmul_problem* p, const float* a, const float* b,
                       float* c) {
  for (int64_t i = 0; i < p->m; ++i)
    for (int64_t j = 0; j < p->n; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < p->k; ++k) sum += a[i * p->k + k] * b[j * p->k + k];
      c[i * p->n + j] = sum;
    }
}
