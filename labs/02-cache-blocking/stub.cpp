// Lab 2: C = A · B with a loop order that reads rows. Each row of C is loaded and stored once for
// every row of B, and all of B is read for every row of C.
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
