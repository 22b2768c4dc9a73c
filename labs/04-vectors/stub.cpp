// Lab 4: C = A · B, one product per instruction. The compiler is forbidden to use vectors: you do.
#include <immintrin.h>

#include "plugin.h"

int stepladder_supports_matmul(const stepladder_matmul_problem* p) {
  return !p->transpose_a && !p->transpose_b;
}

void stepladder_matmul(const stepladder_matmul_problem* p, const float* a, const float* b,
                       float* c) {
  for (int64_t i = 0; i < p->m; ++i) {
    for (int64_t j = 0; j < p->n; ++j) c[i * p->n + j] = 0;
    for (int64_t k = 0; k < p->k; ++k) {
      const float factor = a[i * p->k + k];
      for (int64_t j = 0; j < p->n; ++j) c[i * p->n + j] += factor * b[k * p->n + j];
    }
  }
}
