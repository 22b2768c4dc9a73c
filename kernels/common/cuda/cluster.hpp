// Thread block clusters: blocks that neighbours in the grid form, that run at once on neighbouring
// multiprocessors, and that read and write each other's shared memory. Compute capability 9.0 (CUDA
// Programming Guide, "Thread Block Clusters"). Grid::cluster says of how many blocks, of which one is
// enough. Only .cu files include this; plans of such kernels call require_clusters.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace stepladder {

// Of this block in its cluster. (Which cluster it is, in a grid along x, a division of blockIdx.x by their
// size tells; %clusterid would be a multiplication in floating point.)
__device__ inline unsigned cluster_rank() {
  unsigned rank = 0;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  return rank;
}

// A block's shared memory is the others' to read and write from when all have begun until one may end:
// all threads of all blocks arrive, in the beginning, and wait before they reach for another block's.
// Of the memory that promises nothing.
__device__ inline void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
#endif
}
__device__ inline void cluster_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#endif
}

// __syncthreads() of all blocks of the cluster.
__device__ inline void cluster_sync() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
#endif
  cluster_wait();
}

// Where block `rank` of the cluster has what `own` is in this block's shared memory.
template <class T>
__device__ T* shared_of([[maybe_unused]] unsigned rank, T* own) {
  auto address = reinterpret_cast<std::uint64_t>(own);
#if __CUDA_ARCH__ >= 900
  asm("mapa.u64 %0, %0, %1;" : "+l"(address) : "r"(rank));
#endif
  return reinterpret_cast<T*>(address);
}

}  // namespace stepladder
