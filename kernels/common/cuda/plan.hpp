// Plans of CUDA variants: requirements on the device, and workspace. Only .cu files include this.
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/common/cuda/launch.hpp"
#include "kernels/common/device.hpp"
#include "kernels/common/variant.hpp"

namespace stepladder {

// Each throws NotHere with the reason when there is no device, or when the device does not meet the
// requirement.
void require_cuda();                            // any device
void require_compute_capability(int least);     // 80 for 8.0
void require_hopper();                          // compute capability 9.x, no later one
void require_tf32();                            // 8.0, and TF32 is not disabled by the environment
void require_shared_memory(std::size_t bytes);  // for one block

// For kernels that are launched in clusters.
template <class... Parameters>
void require_clusters(void (*kernel)(Parameters...)) {
  constexpr int first_with_clusters = 90;
  require_compute_capability(first_with_clusters);
  cudaFuncAttributes attributes;
  STEPLADDER_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
  if (attributes.ptxVersion < first_with_clusters)
    throw NotHere("built without clusters: STEPLADDER_CUDA_ARCHITECTURES must name 90 or later");
}

// Properties of the device; one must be present.
int cuda_multiprocessors();
std::size_t cuda_memory_bytes();

// A factory for functions that launch on cuda_stream() and have no state between runs.
template <class Primitive, auto Function>
std::unique_ptr<PlanOf<Primitive>> make_cuda_plan(const typename Primitive::Problem& problem,
                                                  const Resources& resources) {
  require_cuda();
  return plan_of<Function>(problem, resources);
}

// Workspace for plans.
struct ReleaseOnDevice {
  void operator()(void* memory) const { device()->release(memory); }
};
using DeviceMemory = std::unique_ptr<void, ReleaseOnDevice>;

inline DeviceMemory device_memory(std::size_t bytes) {
  return DeviceMemory(bytes == 0 ? nullptr : device()->allocate(bytes));
}

}  // namespace stepladder
