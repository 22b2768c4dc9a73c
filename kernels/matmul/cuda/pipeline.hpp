// Copies from global to shared memory kept in flight while the block computes. Only .cu files
// include this.
#pragma once

#include "kernels/common/cuda/async_copy.hpp"

namespace stepladder::matmul {

// Calls compute(stage) for step after step, with what copy(stage) had started to bring into that
// stage of shared memory stages - 1 steps earlier. With two stages: one is filled while the other
// is read.
template <int stages, class Copy, class Compute>
__device__ void pipeline(int steps, const Copy& copy, const Compute& compute) {
#pragma unroll
  for (int step = 0; step < stages - 1; ++step) {
    if (step < steps) copy(step);
    commit_copies();
  }
  for (int step = 0; step < steps; ++step) {
    wait_for_copies<stages - 2>();
    __syncthreads();  // all have their copies of this step, and none still reads the step before
    const int ahead = step + stages - 1;
    if (ahead < steps) copy(ahead % stages);
    commit_copies();
    compute(step % stages);
  }
}

}  // namespace stepladder::matmul
