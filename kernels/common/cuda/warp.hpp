// What the 32 threads of a warp make of their values together, the same in each of them. Only .cu files
// include this.
#pragma once

#include <cuda_runtime.h>

namespace stepladder {

inline constexpr int warp_threads = 32;
inline constexpr unsigned whole_warp = 0xffffffffU;

__device__ inline float warp_sum(float value) {
  for (int apart = warp_threads / 2; apart > 0; apart /= 2)
    value += __shfl_xor_sync(whole_warp, value, apart);
  return value;
}

__device__ inline float warp_max(float value) {
  for (int apart = warp_threads / 2; apart > 0; apart /= 2)
    value = fmaxf(value, __shfl_xor_sync(whole_warp, value, apart));
  return value;
}

}  // namespace stepladder
