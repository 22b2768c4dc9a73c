// Emulates kernels/common/cuda/shared_memory.hpp.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace stepladder {

template <class T>
T* dynamic_shared() {
  return reinterpret_cast<T*>(simt::dynamic_shared_memory());
}

inline std::uint32_t shared_address(const void* object) {
  if (!simt::is_shared(object, 1))
    simt::fail("takes the shared address of an object outside shared memory");
  return static_cast<std::uint32_t>(static_cast<const std::byte*>(object) -
                                    simt::dynamic_shared_memory());
}

}  // namespace stepladder
