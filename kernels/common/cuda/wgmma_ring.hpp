// Shared by kernels in which one warpgroup (the producer) fills a ring of stages in shared memory
// and two (the consumers) multiply them. Only .cu files include this.
#pragma once

#include "kernels/common/cuda/check.hpp"
#include "kernels/common/variant.hpp"

namespace stepladder {

inline constexpr int warpgroup_threads = 128;

// A stage of the ring and the parity of the barrier phase in which it is filled.
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

// Registers per thread at launch: 65536 / 384 threads, rounded down to a multiple of 8.
inline constexpr int registers_at_start = 168;

// Throws NotHere if the kernel was not compiled for 90a: its body is then empty and needs fewer
// registers than `least`.
template <class... Parameters>
void require_wgmma_code(void (*kernel)(Parameters...), int least = registers_at_start) {
  cudaFuncAttributes attributes;
  STEPLADDER_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
  if (attributes.numRegs < least)
    throw NotHere("built without wgmma: STEPLADDER_CUDA_ARCHITECTURES must name 90a");
}

}  // namespace stepladder
