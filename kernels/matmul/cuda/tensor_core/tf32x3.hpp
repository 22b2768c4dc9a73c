// 3xTF32 arithmetic of a TensorTile (tf32x3.cu): operands are split into big + small, and three of
// the four products are accumulated, the small ones separately. Only .cu files include this; their
// plans call require_tf32().
#pragma once

#include "kernels/common/cuda/mma.hpp"

namespace stepladder::matmul {

struct Tf32x3 {
  template <int count>
  struct Fragment {
    std::uint32_t big[count], small[count];
    __device__ void set(int e, float value) {
      big[e] = to_tf32(value);
      small[e] = __float_as_uint(value - __uint_as_float(big[e]));  // exact; mma drops the last bit
    }
  };
  struct Accumulator {
    float big[4] = {}, small[4] = {};
    __device__ void add(const Fragment<4>& a, const Fragment<2>& b) {
      mma_16x8x8_tf32(small, a.small, b.big);
      mma_16x8x8_tf32(small, a.big, b.small);
      mma_16x8x8_tf32(big, a.big, b.big);
    }
    __device__ float value(int e) const { return big[e] + small[e]; }
  };
};

}  // namespace stepladder::matmul
