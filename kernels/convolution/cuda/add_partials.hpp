// The second kernel of split-K: adds the partial results of all slices, in a fixed order and
// without atomics, so that every run gives the same bits. Only .cu files include this.
#pragma once

#include <cstdint>

#include "kernels/common/cuda/launch.hpp"
#include "kernels/common/cuda/reduce_partials.hpp"

namespace stepladder::convolution {

static __global__ void add_partials_kernel(const float* partials, int count, std::int64_t size,
                                           float* sum) {
  const std::int64_t i = thread_index();
  if (i < size) sum[i] = reduce_partials(partials, count, size, i);
}

// partials: [count, size]; sum: [size]
inline void add_partials(const float* partials, int count, std::int64_t size, float* sum) {
  launch(add_partials_kernel, {blocks_for(size), block_threads}, partials, count, size, sum);
}

}  // namespace stepladder::convolution
