// Reductions over the 32 threads of a warp; each gets the result. Only .cu files include this.
#pragma once

#include <cuda_runtime.h>

namespace stepladder {

inline constexpr int warp_threads = 32;
inline constexpr unsigned whole_warp = 0xffffffffU;

__device__ inline float warp_sum(float value) {
  for (int offset = warp_threads / 2; offset > 0; offset /= 2)
    value += __shfl_xor_sync(whole_warp, value, offset);
  return value;
}

__device__ inline float warp_max(float value) {
  for (int offset = warp_threads / 2; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(whole_warp, value, offset));
  return value;
}

}  // namespace stepladder
