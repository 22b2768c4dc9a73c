// Asynchronous copies from global to shared memory that bypass the registers: cp.async of compute
// capability 8.0 (PTX ISA, "Data Movement and Conversion Instructions: Non-bulk copy"). The plan of
// a kernel that uses them calls require_compute_capability(80). Only .cu files include this.
#pragma once

#include <cuda_runtime.h>

namespace stepladder {

// Copies the first `valid` of `bytes` (4, 8 or 16) bytes and fills the rest with zeros. If valid is
// 0, `global` is not read. Both addresses are multiples of `bytes`.
template <int bytes>
__device__ inline void copy_async(void* shared, const void* global, int valid = bytes) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16);
#if __CUDA_ARCH__ >= 800
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  if constexpr (bytes == 16)  // .cg caches in L2 only: this block does not read the data again
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(valid)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(global), "n"(bytes),
                 "r"(valid)
                 : "memory");
#endif
}

// Copies 16 bytes through L1, or writes 16 zero bytes if !is_valid; `global` may then be any
// address. Takes four instructions less than copy_async() with a byte count.
__device__ inline void copy_async_zfill(void* shared, const void* global, bool is_valid) {
#if __CUDA_ARCH__ >= 800
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile(
      "{\n"
      ".reg .pred ignore;\n"
      "setp.eq.u32 ignore, %2, 0;\n"
      "cp.async.ca.shared.global [%0], [%1], 16, ignore;\n"
      "}" ::"r"(to),
      "l"(global), "r"(static_cast<unsigned>(is_valid))
      : "memory");
#endif
}

// Groups this thread's copies since its last commit.
__device__ inline void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most the `pending` most recent groups of this thread are incomplete. The copies of
// other threads are visible after they have waited too and all have passed a barrier.
template <int pending>
__device__ inline void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
}

}  // namespace stepladder
