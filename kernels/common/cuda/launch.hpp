// How CUDA rungs start a kernel. Only .cu files include this.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/common/cuda/check.hpp"

namespace stepladder {

// All kernels, copies and timer events go to this one stream and so run in the order of their
// calls. There must be a device.
cudaStream_t cuda_stream();

struct Grid {
  dim3 blocks;
  dim3 threads;                  // of each block
  std::size_t shared_bytes = 0;  // of each block, besides its __shared__ variables
  unsigned cluster = 0;          // blocks along x in each, see cuda_cluster.hpp; 0: no clusters;
                                 // 1: every block is one, which makes cluster_index() valid
};

// What every GPU with clusters can run.
inline constexpr int most_blocks_of_a_cluster = 8;

// kernel<<<grid.blocks, grid.threads, grid.shared_bytes, stream>>>(arguments…), checked.
template <class... Parameters, class... Arguments>
void launch_on(cudaStream_t stream, void (*kernel)(Parameters...), const Grid& grid,
               Arguments&&... arguments) {
  constexpr std::size_t granted_unasked = std::size_t{48} << 10;
  if (grid.shared_bytes > granted_unasked)
    STEPLADDER_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               static_cast<int>(grid.shared_bytes)));
  cudaLaunchConfig_t config{};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = stream;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = grid.cluster;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  config.attrs = &cluster;
  config.numAttrs = grid.cluster == 0 ? 0 : 1;  // older GPUs know of no clusters
  STEPLADDER_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...));
}

//     launch(multiply_kernel, {blocks_for(p.m * p.n), block_threads}, p, o);
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), const Grid& grid, Arguments&&... arguments) {
  launch_on(cuda_stream(), kernel, grid, std::forward<Arguments>(arguments)...);
}

// How many blocks do `count` things, each block `per_block` of them.
inline constexpr unsigned block_threads = 256;

inline unsigned blocks_for(std::int64_t count, std::int64_t per_block = block_threads) {
  return static_cast<unsigned>((count + per_block - 1) / per_block);
}

// Where each thread works on one element: the thread's own, if there are so many.
__device__ inline std::int64_t thread_index() {
  return std::int64_t{blockIdx.x} * block_threads + threadIdx.x;
}

}  // namespace stepladder
