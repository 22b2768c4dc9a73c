// What kernels share in which one warpgroup fills a ring of stages in shared memory and two multiply
// what is there. Only .cu files include this.
#pragma once

#include "kernels/common/cuda/check.hpp"
#include "kernels/common/variant.hpp"

namespace stepladder {

inline constexpr int warpgroup_threads = 128;

// A stage, and the parity of the phase in which it is filled.
template <int stages>
struct RingPosition {
  int stage = 0;
  unsigned parity = 0;
  __device__ void advance() {
    if (++stage < stages) return;
    stage = 0;
    parity ^= 1;
  }
};

inline constexpr int registers_at_start = 168;  // of each of 384 threads: 65536 / 384, in eights

// The body of such a kernel exists in code for 90a alone; built otherwise it has no registers to speak of.
template <class... Parameters>
void require_wgmma_code(void (*kernel)(Parameters...)) {
  cudaFuncAttributes attributes;
  STEPLADDER_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
  if (attributes.numRegs < registers_at_start)
    throw NotHere("built without wgmma: STEPLADDER_CUDA_ARCHITECTURES must name 90a");
}

}  // namespace stepladder
