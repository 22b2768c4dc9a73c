// Lab 6: C = A · B on one thread. p->threads says how many you may use.
#include "plugin.h"

int stepladder_supports_matmul(const stepladder_matmul_problem* p) {
  return !p->transpose_a && !p->transpose_b;
}

void stepladder_matmul(const stepladder_matmul_problem* p, const float* a, const float* b,
                       float* c) {
  for (int64_t i = 0; i < p->m; ++i) {
    float* row = c + i * p->n;
    for (int64_t j = 0; j < p->n; ++j) row[j] = 0;
    for (int64_t k = 0; k < p->k; ++k) {
      const float factor = a[i * p->k + k];
#pragma omp simd
      for (int64_t j = 0; j < p->n; ++j) row[j] += factor * b[k * p->n + j];
    }
  }
}
