// Tensor-core product of a 16 x 8 and an 8 x 8 matrix in TF32 by the 32 threads of a warp: mma.sync
// of compute capability 8.0 (PTX ISA, "Matrix Fragments for mma.m16n8k8"). The plan of a kernel
// that uses it calls require_compute_capability(80). Only .cu files include this.
//
// The fragment of each matrix that a thread holds, with group = lane / 4 and member = lane % 4:
//
//     A [16, 8]   a[0]: row group, column member       a[2]: row group, column member + 4
//                 a[1]: row group + 8, same column     a[3]: row group + 8, same column
//     B [8, 8]    b[0]: row member, column group       b[1]: row member + 4, same column
//     C [16, 8]   c[0], c[1]: row group, columns 2 member and 2 member + 1
//                 c[2], c[3]: row group + 8, same columns
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace stepladder {

// The nearest TF32 number (10-bit mantissa, ties away from zero) as the bits of a float.
__device__ inline std::uint32_t to_tf32(float value) {
  std::uint32_t bits = 0;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
#endif
  return bits;
}

// C += A B. The 13 lowest bits of the operands are ignored.
__device__ inline void mma_16x8x8_tf32(float (&c)[4], const std::uint32_t (&a)[4],
                                       const std::uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

}  // namespace stepladder
