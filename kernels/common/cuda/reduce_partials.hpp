// The sum of split-K partials.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace stepladder {

// Element i of the sum of partials [count, size]. The order of the additions is fixed, so every run
// gives the same bits.
__device__ inline float reduce_partials(const float* partials, int count, std::int64_t size,
                                        std::int64_t i) {
  float sum = 0;
  for (int slice = 0; slice < count; ++slice) sum += partials[slice * size + i];
  return sum;
}

}  // namespace stepladder
