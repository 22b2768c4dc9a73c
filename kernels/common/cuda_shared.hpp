// Shared memory whose size the launch chooses: Grid::shared_bytes of it. Only .cu files include this.
#pragma once

namespace stepladder {

// The block's own, as an array of T. There is one such memory: every call gives its start.
template <class T>
__device__ T* dynamic_shared() {
  extern __shared__ __align__(1024) unsigned char bytes[];  // as TMA's widest swizzle wants it
  return reinterpret_cast<T*>(bytes);
}

}  // namespace stepladder
