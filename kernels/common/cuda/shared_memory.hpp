// Dynamic shared memory: its size is Grid::shared_bytes of the launch. Only .cu files include this.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace stepladder {

// Its start, as an array of T. Every call returns the same address.
template <class T>
__device__ T* dynamic_shared() {
  extern __shared__ __align__(1024) unsigned char bytes[];  // for the 128-byte swizzle
  return reinterpret_cast<T*>(bytes);
}

// An object's address in the shared state space, for instructions that take no generic address.
__device__ inline std::uint32_t shared_address(const void* object) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(object));
}

}  // namespace stepladder
