// Barriers in shared memory on which threads arrive or wait and asynchronous copies report
// completion: mbarrier of compute capability 9.0 (PTX ISA, "Parallel Synchronization and
// Communication Instructions: mbarrier"). Only .cu files include this.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/common/cuda/check.hpp"
#include "kernels/common/cuda/shared_memory.hpp"

namespace stepladder {

// A phase completes when all expected threads have arrived and all expected bytes have been copied;
// then the next phase begins, with the same number of arrivals. Phases have parities 0, 1, 0, 1, …
class Barrier {
 public:
  // Called by one thread, followed by fence_barrier_init() and a __syncthreads() of the block.
  __device__ void initialise(unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(arrivals)
                 : "memory");
  }

  __device__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address()) : "memory");
  }

  // Arrives at the same barrier in block `rank` of the cluster. It does not make this thread's
  // writes visible to that block; that would take a fence of the whole GPU's memory each time.
  __device__ void arrive_at(unsigned rank) {
    asm volatile(
        "{\n"
        ".reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
        "}" ::"r"(address()),
        "r"(rank)
        : "memory");
  }

  // Arrives, and adds `bytes` to the bytes that copies must bring before the phase completes.
  __device__ void arrive_and_expect_tx(unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()),
                 "r"(bytes)
                 : "memory");
  }

  // Arrives when all cp.async copies that this thread has started (async_copy.hpp) are complete.
  __device__ void arrive_after_copies() {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(address())
                 : "memory");
  }

  // Waits until the phase of this parity, the current or the preceding one, is complete. Phase 0 is
  // preceded by a complete phase of parity 1. A barrier that never completes stops the kernel after
  // longest_wait_seconds instead of blocking the GPU for ever.
  __device__ void wait(unsigned parity) {
    if (is_complete(parity)) return;
    constexpr std::uint64_t most = std::uint64_t{longest_wait_seconds} * 1'000'000'000;
    const std::uint64_t start = nanoseconds();
    while (!is_complete(parity))
      if (nanoseconds() - start > most) __trap();  // printing a message could disable setmaxnreg
  }

  __device__ std::uint32_t address() const { return shared_address(this); }

 private:
  // Waits for a short time that the hardware determines.
  __device__ bool is_complete(unsigned parity) {
    unsigned result = 0;
    asm volatile(
        "{\n"
        ".reg .pred is_complete;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 is_complete, [%1], %2;\n"
        "selp.u32 %0, 1, 0, is_complete;\n"
        "}"
        : "=r"(result)
        : "r"(address()), "r"(parity)
        : "memory");
    return result != 0;
  }
  static __device__ std::uint64_t nanoseconds() {
    std::uint64_t time = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
  }

  std::uint64_t state_;
};

// Makes initialised barriers visible to the TMA and to the other blocks of the cluster.
__device__ inline void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

}  // namespace stepladder
