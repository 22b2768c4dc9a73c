// Launching kernels. Only .cu files include this.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "kernels/common/cuda/check.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/common/variant.hpp"

namespace stepladder {

// The one stream of all kernels, copies and timer events, which run in the order of their calls.
// Requires a device.
cudaStream_t cuda_stream();

struct Grid {
  dim3 blocks;
  dim3 threads;                  // per block
  std::size_t shared_bytes = 0;  // dynamic shared memory per block
  unsigned cluster = 0;          // blocks per cluster, along x (cluster.hpp); 0: launch without
};

// The blocks of a grid along x. Throws Unsupported above CUDA's limit.
inline unsigned grid_x(std::int64_t blocks) {
  constexpr std::int64_t most = 2147483647;
  if (blocks > most)
    throw Unsupported("needs " + std::to_string(blocks) + " blocks; a grid has at most " +
                      std::to_string(most));
  return static_cast<unsigned>(blocks);
}

// Throws Unsupported above CUDA's limit of blocks along y and z. Called by the constructors of
// plans whose grids grow along y or z with the problem.
inline void require_grid(const dim3& blocks) {
  constexpr unsigned most = 65535;
  if (blocks.y > most || blocks.z > most)
    throw Unsupported("needs a grid of " + std::to_string(blocks.x) + " x " +
                      std::to_string(blocks.y) + " x " + std::to_string(blocks.z) +
                      " blocks; along y and z CUDA supports at most " + std::to_string(most));
}

// The largest cluster that every GPU with clusters supports.
inline constexpr int max_portable_cluster_size = 8;

// Permits a kernel to use `bytes` of dynamic shared memory on the current GPU. The driver is called
// once for each kernel and GPU, and again only for more bytes.
inline void allow_shared_bytes(const void* kernel, std::size_t bytes) {
  constexpr std::size_t default_limit = std::size_t{48} << 10;
  if (bytes <= default_limit) return;
  thread_local std::map<std::pair<const void*, int>, std::size_t> limits;
  int gpu = 0;
  STEPLADDER_CUDA_CHECK(cudaGetDevice(&gpu));
  std::size_t& limit = limits[{kernel, gpu}];
  if (bytes <= limit) return;
  STEPLADDER_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             static_cast<int>(bytes)));
  limit = bytes;
}

// kernel<<<grid.blocks, grid.threads, grid.shared_bytes, stream>>>(arguments…), checked.
template <class... Parameters, class... Arguments>
void launch_on(cudaStream_t stream, void (*kernel)(Parameters...), const Grid& grid,
               Arguments&&... arguments) {
  allow_shared_bytes(reinterpret_cast<const void*>(kernel), grid.shared_bytes);
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
  config.numAttrs = grid.cluster == 0 ? 0 : 1;  // older GPUs reject the attribute
  STEPLADDER_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...));
}

//     launch(multiply_kernel, {blocks_for(p.m * p.n), block_threads}, p, o);
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), const Grid& grid, Arguments&&... arguments) {
  launch_on(cuda_stream(), kernel, grid, std::forward<Arguments>(arguments)...);
}

inline constexpr unsigned block_threads = 256;

// Blocks that process `count` elements, `per_block` each.
inline unsigned blocks_for(std::int64_t count, std::int64_t per_block = block_threads) {
  return grid_x(ceil_div(count, per_block));
}

// The element of this thread in kernels with blocks of block_threads and one element per thread.
__device__ inline std::int64_t thread_index() {
  return std::int64_t{blockIdx.x} * block_threads + threadIdx.x;
}

}  // namespace stepladder
