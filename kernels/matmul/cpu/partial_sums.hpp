// Products whose threads divide K: the first writes to C, each other one to its own partial sums.
#pragma once

#include <cstdint>

#include "kernels/common/cpu/partition.hpp"

namespace stepladder::matmul::inline STEPLADDER_ISA {

// c[i] += sum over t < count of partial[t, i] for i in `part`.
//   partial  [count, size]   size: of the whole C
inline void add_partial_sums(const float* partial, int count, std::int64_t size, Range part,
                             float* c) {
  for (int t = 0; t < count; ++t, partial += size)
    for (std::int64_t i = part.begin; i < part.end; ++i) c[i] += partial[i];
}

}  // namespace stepladder::matmul::inline STEPLADDER_ISA
