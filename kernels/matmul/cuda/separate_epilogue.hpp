// The epilogue as a separate pass over C, after a library's product. Only .cu files include this.
#pragma once

#include <algorithm>

#include "kernels/common/cuda/launch.hpp"
#include "kernels/matmul/cuda/operand.hpp"
#include "kernels/matmul/cuda/store.hpp"

namespace stepladder::matmul {

// A warp covers 128 columns, four per thread, and steps down the rows; no index is divided.
template <bool vectors>
__global__ void epilogue_kernel(Problem p, Operands o) {
  const std::int64_t j = 4 * (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x);
  if (j >= p.n) return;
  for (std::int64_t i = std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y; i < p.m;
       i += std::int64_t{gridDim.y} * blockDim.y) {
    const float* const from = o.c + i * p.n + j;
    float four[4];
    if constexpr (vectors) {
      const float4 v = *reinterpret_cast<const float4*>(from);
      four[0] = v.x, four[1] = v.y, four[2] = v.z, four[3] = v.w;
    } else {
#pragma unroll
      for (int v = 0; v < 4; ++v) four[v] = j + v < p.n ? from[v] : 0;
    }
    store_contiguous<4, vectors>(p, o, i, j, four);
  }
}

// Applies the problem's epilogue to the product in C; does nothing without an epilogue.
inline void separate_epilogue(const Problem& p, const Operands& o) {
  if (p.epilogue == Epilogue::none) return;
  constexpr unsigned rows = 8, max_grid_y = 65535;
  const dim3 blocks(blocks_for(p.n, 128), std::min(blocks_for(p.m, rows), max_grid_y));
  launch(allows_vectors(o.c, p.n) ? epilogue_kernel<true> : epilogue_kernel<false>,
         {blocks, dim3(32, rows)}, p, o);
}

}  // namespace stepladder::matmul
