// Emulates kernels/common/cuda/cluster.hpp.
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
T* map_shared_rank(T* own, unsigned rank) {
  std::byte* const memory = simt::dynamic_shared_memory_of(rank);
  return reinterpret_cast<T*>(memory + simt::shared_offset(own));
}

}  // namespace stepladder
