// The error check around every CUDA runtime call.
#pragma once

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace stepladder {

// Throws std::runtime_error with the call, its source line and CUDA's message. Clears the error,
// unless a kernel failed: CUDA reports such errors until the process ends.
inline void cuda_check(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  throw std::runtime_error(std::string(call) + " at " + file + ":" + std::to_string(line) + ": " +
                           cudaGetErrorString(status));
}

}  // namespace stepladder

#define STEPLADDER_CUDA_CHECK(call) ::stepladder::cuda_check((call), #call, __FILE__, __LINE__)
