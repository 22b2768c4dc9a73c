// kernels/common/cuda_shared.hpp on the CPU.
#pragma once

#include <cuda_runtime.h>

namespace stepladder {

template <class T>
T* dynamic_shared() {
  return reinterpret_cast<T*>(simt::dynamic_shared_memory());
}

}  // namespace stepladder
