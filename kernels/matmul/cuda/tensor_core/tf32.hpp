// TF32 arithmetic of a TensorTile: operands are rounded to TF32, products are accumulated in fp32.
// Only .cu files include this; their plans call require_tf32().
#pragma once

#include "kernels/common/cuda/mma.hpp"

namespace stepladder::matmul {

struct Tf32 {
  template <int count>
  struct Fragment {
    std::uint32_t bits[count];
    __device__ void set(int e, float value) { bits[e] = to_tf32(value); }
  };
  struct Accumulator {
    float c[4] = {};
    __device__ void add(const Fragment<4>& a, const Fragment<2>& b) {
      mma_16x8x8_tf32(c, a.bits, b.bits);
    }
    __device__ float value(int e) const { return c[e]; }
  };
};

}  // namespace stepladder::matmul
