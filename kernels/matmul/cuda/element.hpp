// The work of a thread in kernels with one thread per element of C.
#pragma once

#include "kernels/common/host_device.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {

// C[i, j]: row i of op(A) times column j of op(B).
STEPLADDER_HOST_DEVICE inline float element(const Problem& p, const Operands& o, std::int64_t i,
                                            std::int64_t j) {
  float sum = 0;
  for (std::int64_t l = 0; l < p.k; ++l) {
    const float a = p.transpose_a ? o.a[l * p.m + i] : o.a[i * p.k + l];
    const float b = p.transpose_b ? o.b[j * p.k + l] : o.b[l * p.n + j];
    sum += a * b;
  }
  return sum;
}

}  // namespace stepladder::matmul
