// Where sums become C: within its edges, alone or four neighbours of a row at once. Only .cu files
// include this.
#pragma once

#include "kernels/common/cuda_launch.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {

__device__ inline void store(const Problem& p, const Operands& o, std::int64_t i, std::int64_t j,
                             float sum) {
  if (i < p.m && j < p.n) o.c[i * p.n + j] = sum;
}

// `vectors` says that C's rows are in_vectors; j is a multiple of 4.
template <bool vectors>
__device__ void store_four(const Problem& p, const Operands& o, std::int64_t i, std::int64_t j,
                           const float* sums) {
  if constexpr (vectors) {
    if (i < p.m && j < p.n)
      *reinterpret_cast<float4*>(o.c + i * p.n + j) =
          make_float4(sums[0], sums[1], sums[2], sums[3]);
  } else {
#pragma unroll
    for (int v = 0; v < 4; ++v) store(p, o, i, j + v, sums[v]);
  }
}

}  // namespace stepladder::matmul
