// Thread block clusters: neighbouring blocks of the grid that run at the same time and can access
// each other's shared memory. Compute capability 9.0 (CUDA Programming Guide, "Thread Block
// Clusters"). Grid::cluster is the number of blocks. Only .cu files include this; plans of such
// kernels call require_clusters.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace stepladder {

// Rank of this block in its cluster. (In a one-dimensional grid the cluster's index is blockIdx.x
// divided by the cluster size, which is cheaper than %clusterid.)
__device__ inline unsigned cluster_rank() {
  unsigned rank = 0;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  return rank;
}

// Shared memory of another block may be accessed only while that block runs: all threads of all
// blocks arrive at the start, and wait before their first access to it. The arrival is relaxed; it
// orders no memory accesses.
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

// A __syncthreads() of all blocks of the cluster.
__device__ inline void cluster_sync() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
#endif
  cluster_wait();
}

// The address in block `rank` of the cluster that corresponds to `own` in this block.
template <class T>
__device__ T* map_shared_rank(T* own, [[maybe_unused]] unsigned rank) {
  auto address = reinterpret_cast<std::uint64_t>(own);
#if __CUDA_ARCH__ >= 900
  asm("mapa.u64 %0, %0, %1;" : "+l"(address) : "r"(rank));
#endif
  return reinterpret_cast<T*>(address);
}

}  // namespace stepladder
