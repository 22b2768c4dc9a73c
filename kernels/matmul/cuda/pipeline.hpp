// A multi-stage pipeline of asynchronous copies and computation. Only .cu files include this.
#pragma once

#include "kernels/common/cuda/async_copy.hpp"

namespace stepladder::matmul {

// Calls compute(stage) for each step. Its data were requested by copy(stage) stages - 1 steps
// earlier. With two stages this is double buffering.
template <int stages, class Copy, class Compute>
__device__ void pipeline(int steps, const Copy& copy, const Compute& compute) {
#pragma unroll
  for (int step = 0; step < stages - 1; ++step) {
    if (step < steps) copy(step);
    commit_copies();
  }
  for (int step = 0; step < steps; ++step) {
    wait_for_copies<stages - 2>();
    __syncthreads();  // the copies of all threads are visible, and the previous stage is free
    const int ahead = step + stages - 1;
    if (ahead < steps) copy(ahead % stages);
    commit_copies();
    compute(step % stages);
  }
}

}  // namespace stepladder::matmul
