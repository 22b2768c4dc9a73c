// Products on Hopper's tensor cores by the 128 threads of a warpgroup, asynchronously: wgmma of
// sm_90a (PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions"). The
// plan of a kernel that uses them calls require_hopper(). Only .cu files include this.
//
// A and D (the accumulators) are in registers. With warp = thread / 32 % 4, group = lane / 4 and
// member = lane % 4, a thread holds for TF32:
//
//     A [64, 8]   a[0]: row 16 warp + group, column member    a[2]: same row, column member + 4
//                 a[1]: row 16 warp + group + 8, same column  a[3]: row of a[1], column member + 4
//     D [64, n]   d[i]: row 16 warp + group + 8 (i / 2 % 2), column 8 (i / 4) + 2 member + i % 2
//
// B [8, n] is in shared memory. For TF32 it must be K-contiguous, stored as Bᵀ [n, 8]: 8 columns of
// a swizzled matrix (swizzle.hpp), given by its descriptor. Here n is 128 or 64.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace stepladder {

// Required before the first product, and after a thread has written registers of a product.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// Makes what this thread has written to shared memory visible to wgmma. A __syncthreads() follows.
// (What the TMA has written is visible.)
__device__ inline void fence_shared_writes() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// d += A B, complete when wgmma_wait() returns; d and a must not be accessed before. The 13 lowest
// bits of the operands are ignored. b: a descriptor.
__device__ inline void wgmma_64x128x8_tf32(float (&d)[64], const std::uint32_t (&a)[4],
                                           std::uint64_t b) {
  asm volatile(
      "{\n"
      ".reg .pred add;\n"
      "setp.eq.u32 add, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, "
      " %8, %9, %10, %11, %12, %13, %14, %15, "
      " %16, %17, %18, %19, %20, %21, %22, %23, "
      " %24, %25, %26, %27, %28, %29, %30, %31, "
      " %32, %33, %34, %35, %36, %37, %38, %39, "
      " %40, %41, %42, %43, %44, %45, %46, %47, "
      " %48, %49, %50, %51, %52, %53, %54, %55, "
      " %56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, add, 1, 1;\n"
      "}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]),
        "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
        "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
        "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]),
        "+f"(d[63])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

__device__ inline void wgmma_64x64x8_tf32(float (&d)[32], const std::uint32_t (&a)[4],
                                          std::uint64_t b) {
  asm volatile(
      "{\n"
      ".reg .pred add;\n"
      "setp.eq.u32 add, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, "
      " %8, %9, %10, %11, %12, %13, %14, %15, "
      " %16, %17, %18, %19, %20, %21, %22, %23, "
      " %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, add, 1, 1;\n"
      "}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

// Makes the products since the last call a group, and waits for all groups of this warp but the
// `in_flight` newest.
template <int in_flight = 0>
__device__ void wgmma_wait() {
  asm volatile(
      "wgmma.commit_group.sync.aligned;\n"
      "wgmma.wait_group.sync.aligned %0;" ::"n"(in_flight)
      : "memory");
}

// Keeps the compiler from reading the accumulators before the preceding wgmma_wait().
template <int count>
__device__ void fence_accumulators(float (&d)[count]) {
#pragma unroll
  for (float& accumulator : d) asm volatile("" : "+f"(accumulator)::"memory");
}

// Move registers from warpgroups that need few (dealloc) to those that need many (alloc). All
// threads of the warpgroup call it; `registers` is the new number per thread, a multiple of 8.
template <int registers>
__device__ void warpgroup_reg_dealloc() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
__device__ void warpgroup_reg_alloc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

}  // namespace stepladder
