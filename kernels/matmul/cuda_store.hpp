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

// 2 or 4 sums; `vectors` says that C's rows are in_vectors; j is a multiple of `count`.
template <int count, bool vectors>
__device__ void store_neighbours(const Problem& p, const Operands& o, std::int64_t i,
                                 std::int64_t j, const float* sums) {
  static_assert(count == 2 || count == 4);
  if constexpr (vectors) {
    if (i >= p.m || j >= p.n) return;
    float* const to = o.c + i * p.n + j;
    if constexpr (count == 4)
      *reinterpret_cast<float4*>(to) = make_float4(sums[0], sums[1], sums[2], sums[3]);
    else
      *reinterpret_cast<float2*>(to) = make_float2(sums[0], sums[1]);
  } else {
#pragma unroll
    for (int v = 0; v < count; ++v) store(p, o, i, j + v, sums[v]);
  }
}

}  // namespace stepladder::matmul
