// Shared memory whose size the launch chooses: Grid::shared_bytes of it. Only .cu files include this.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace stepladder {

// The block's own, as an array of T. There is one such memory: every call gives its start.
template <class T>
__device__ T* dynamic_shared() {
  extern __shared__ __align__(1024) unsigned char bytes[];  // as TMA's widest swizzle wants it
  return reinterpret_cast<T*>(bytes);
}

// Where an object lies in the block's shared memory, as instructions that know no other memory want it.
__device__ inline std::uint32_t shared_address(const void* object) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(object));
}

}  // namespace stepladder
