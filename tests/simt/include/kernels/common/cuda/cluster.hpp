// kernels/common/cuda/cluster.hpp on the CPU.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace stepladder {

inline unsigned cluster_rank() { return simt::cluster_rank(); }

inline void cluster_arrive() { simt::arrive_at_cluster(); }
inline void cluster_wait(const simt::Here& place = simt::Here::current()) {
  simt::wait_for_cluster(place);
}
inline void cluster_sync(const simt::Here& place = simt::Here::current()) {
  cluster_arrive();
  cluster_wait(place);
}

template <class T>
T* shared_of(unsigned rank, T* own) {
  std::byte* const there = simt::dynamic_shared_memory_of(rank);
  return reinterpret_cast<T*>(there + simt::shared_offset(own));
}

}  // namespace stepladder
