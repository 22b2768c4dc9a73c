// The error check around every CUDA runtime call.
#pragma once

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace stepladder {

// A kernel that waits longer than this for a barrier of barrier.hpp traps.
inline constexpr int longest_wait_seconds = 4;

// Throws std::runtime_error with the call, its source line and CUDA's message. Clears the error,
// unless a kernel failed: CUDA reports such errors until the process ends.
inline void cuda_check(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  std::string message = std::string(call) + " at " + file + ":" + std::to_string(line) + ": " +
                        cudaGetErrorString(status);
  if (status == cudaErrorLaunchFailure)
    message += " (a kernel stopped: it waited more than " + std::to_string(longest_wait_seconds) +
               " s for a barrier, or it accessed memory that it must not)";
  throw std::runtime_error(message);
}

}  // namespace stepladder

#define STEPLADDER_CUDA_CHECK(call) ::stepladder::cuda_check((call), #call, __FILE__, __LINE__)
