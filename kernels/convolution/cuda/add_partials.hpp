// The end of a sum that was cut into parts: each has a result of its own, and these are added in their order,
// without atomics, so that a result repeats bit for bit. Only .cu files include this.
#pragma once

#include <cstdint>

#include "kernels/common/cuda/launch.hpp"
#include "kernels/common/cuda/partial_sum.hpp"

namespace stepladder::convolution {

// parts: [count, size]
static __global__ void add_parts_kernel(const float* parts, int count, std::int64_t size,
                                        float* sum) {
  const std::int64_t i = thread_index();
  if (i < size) sum[i] = sum_of_parts(parts, count, size, i);
}

inline void add_parts(const float* parts, int count, std::int64_t size, float* sum) {
  launch(add_parts_kernel, {blocks_for(size), block_threads}, parts, count, size, sum);
}

}  // namespace stepladder::convolution
