// The end of sums that were cut into parts, each by blocks of its own.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace stepladder {

// Element i of parts [count, size], added in their order, so that every run gives the same bits.
__device__ inline float sum_of_parts(const float* parts, int count, std::int64_t size,
                                     std::int64_t i) {
  float sum = 0;
  for (int part = 0; part < count; ++part) sum += parts[part * size + i];
  return sum;
}

}  // namespace stepladder
