// Copies from global to shared memory that the multiprocessor makes by itself, past the registers,
// while the thread goes on: cp.async of compute capability 8.0 (PTX ISA, "Data Movement and
// Conversion Instructions: Non-bulk copy"). Plans of kernels that use them call
// require_compute_capability(80). Only .cu files include this.
#pragma once

#include <cuda_runtime.h>

namespace stepladder {

// Copies the first `valid` of `bytes` (4, 8 or 16) bytes and writes zeros for the rest; with none
// valid `global` is not read. Both addresses are multiples of `bytes`.
template <int bytes>
__device__ inline void copy_async(void* shared, const void* global, int valid = bytes) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16);
#if __CUDA_ARCH__ >= 800
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  if constexpr (bytes == 16)  // .cg goes by L2 alone: L1 would keep what nobody reads again
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(valid)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(global), "n"(bytes),
                 "r"(valid)
                 : "memory");
#endif
}

// Copies 16 bytes, which L1 keeps, or writes as many zeros; then `global` may be any address. (With `valid`
// the compiler spends four more instructions, on how many of the bytes to copy.)
__device__ inline void copy_async_or_zeros(void* shared, const void* global, bool is_there) {
#if __CUDA_ARCH__ >= 800
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile(
      "{\n"
      ".reg .pred ignore;\n"
      "setp.eq.u32 ignore, %2, 0;\n"
      "cp.async.ca.shared.global [%0], [%1], 16, ignore;\n"
      "}" ::"r"(to),
      "l"(global), "r"(static_cast<unsigned>(is_there))
      : "memory");
#endif
}

// Makes a group of this thread's copies since its last group.
__device__ inline void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until this thread's copies are there, all but those of its `newest` newest groups. What
// other threads copied is there after they have waited too and all have met at a barrier.
template <int newest>
__device__ inline void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(newest) : "memory");
#endif
}

}  // namespace stepladder
