// Barriers in shared memory on which some threads arrive and others wait, and on which copies, of the
// TMA and of threads, report what they brought: mbarrier of compute capability 9.0 (PTX ISA, "Parallel
// Synchronization and Communication Instructions: mbarrier"). Only .cu files include this.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/common/cuda/shared_memory.hpp"

namespace stepladder {

// Its phases follow each other: a phase is over when all arrivals that it was made for have come and
// all bytes that they announced; then the next begins, for as many arrivals. Phases have the
// parities 0, 1, 0, 1, …
class Barrier {
 public:
  // By one thread; the others meet at __syncthreads() after its publish_barriers().
  __device__ void initialise(unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(arrivals)
                 : "memory");
  }

  __device__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address()) : "memory");
  }

  // At the same barrier of block `rank` of the cluster. Nothing that this thread has written is promised
  // to that block: it would cost a fence of the whole GPU's memory each time.
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

  // Announces what copies will bring before the phase is over.
  __device__ void arrive_and_expect(unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()),
                 "r"(bytes)
                 : "memory");
  }

  // Arrives when all copies that this thread has started (cuda_async_copy.hpp) are there.
  __device__ void arrive_after_copies() {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(address())
                 : "memory");
  }

  // Until the latest phase of this parity is over. Before phase 0 there was one of parity 1.
  __device__ void wait(unsigned parity) {
    unsigned is_over = 0;
    while (is_over == 0)
      asm volatile(
          "{\n"
          ".reg .pred is_over;\n"
          "mbarrier.try_wait.parity.shared::cta.b64 is_over, [%1], %2;\n"
          "selp.u32 %0, 1, 0, is_over;\n"
          "}"
          : "=r"(is_over)
          : "r"(address()), "r"(parity)
          : "memory");
  }

  __device__ std::uint32_t address() const { return shared_address(this); }

 private:
  std::uint64_t state_;
};

// Makes barriers just initialised known to the TMA.
__device__ inline void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

}  // namespace stepladder
