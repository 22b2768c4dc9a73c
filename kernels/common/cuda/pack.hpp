// A factor of a product laid out anew, along the depth and with every row at a multiple of 16 bytes;
// whole, or cut in two parts, big and small, whose sum it is but for 2⁻²³ (see matmul's tf32x3.cu).
// Only .cu files include this; plans that ask for two parts call require_tf32().
//
// A Factor is a matrix of `extent` x and `depth` l, with element_or_zero(x, l) and holds(x, l);
// along_depth says that it is read faster along l than along x.
#pragma once

#include <cstdint>

#include "kernels/common/cuda/launch.hpp"
#include "kernels/common/cuda/mma.hpp"

namespace stepladder {

// Squares of 32 x 32 pass through shared memory, so that both sides are read and written along
// their rows. `to` is [parts, extent, pitch].
template <class Factor, bool along_depth, int parts>
__global__ void turn_kernel(Factor from, float* to, std::int64_t pitch) {
  constexpr int side = 32;
  __shared__ float square[side][side + 1];  // [x, l]
  const std::int64_t squares_along_l = (from.depth + side - 1) / side;
  const std::int64_t x = blockIdx.x / squares_along_l * side;
  const std::int64_t l = blockIdx.x % squares_along_l * side;
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = static_cast<int>(threadIdx.y); i < side; i += static_cast<int>(blockDim.y))
    if constexpr (along_depth)
      square[i][lane] = from.element_or_zero(x + i, l + lane);
    else
      square[lane][i] = from.element_or_zero(x + lane, l + i);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.y); i < side; i += static_cast<int>(blockDim.y)) {
    if (!from.holds(x + i, l + lane)) continue;
    float* const at = to + (x + i) * pitch + l + lane;
    const float value = square[i][lane];
    const float big = parts == 1 ? value : __uint_as_float(to_tf32(value));
    *at = big;
    if constexpr (parts == 2) at[from.extent * pitch] = value - big;
  }
}

template <int parts, class Factor>
void turn(const Factor& from, float* to, std::int64_t pitch) {
  const Grid grid{blocks_for(from.extent, 32) * blocks_for(from.depth, 32), dim3(32, 8)};
  launch(from.along_depth ? turn_kernel<Factor, true, parts> : turn_kernel<Factor, false, parts>,
         grid, from, to, pitch);
}

}  // namespace stepladder
