// Packs an operand for the TMA and wgmma: K-contiguous, with a row pitch that is a multiple of 16
// bytes. The result has one part, or two for 3xTF32, big and small, whose sum differs from the
// original by at most 2⁻²³ of it (derivation in matmul's README.md). Only .cu files include this;
// plans that pack two parts call require_tf32().
//
// An Operand is a matrix of extent x k with element_or_zero(x, l) and holds(x, l); k_contiguous
// says whether neighbours in memory differ in l or in x.
#pragma once

#include <cstdint>

#include "kernels/common/cuda/launch.hpp"
#include "kernels/common/cuda/mma.hpp"
#include "kernels/common/integer_math.hpp"

namespace stepladder {

// Transposes through 32 x 32 squares in shared memory, so that reads and writes are coalesced.
// to: [parts, extent, pitch]
template <class Operand, bool k_contiguous, int parts>
__global__ void pack_kernel(Operand from, float* to, std::int64_t pitch) {
  constexpr int side = 32;
  __shared__ float square[side][side + 1];  // [x, l]
  const std::int64_t squares_along_k = ceil_div(from.k, side);
  const std::int64_t x = blockIdx.x / squares_along_k * side;
  const std::int64_t l = blockIdx.x % squares_along_k * side;
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = static_cast<int>(threadIdx.y); i < side; i += static_cast<int>(blockDim.y))
    if constexpr (k_contiguous)
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

template <int parts, class Operand>
void pack(const Operand& from, float* to, std::int64_t pitch) {
  const Grid grid{grid_x(ceil_div(from.extent, 32) * ceil_div(from.k, 32)), dim3(32, 8)};
  launch(from.k_contiguous ? pack_kernel<Operand, true, parts> : pack_kernel<Operand, false, parts>,
         grid, from, to, pitch);
}

}  // namespace stepladder
