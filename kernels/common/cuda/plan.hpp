// How CUDA rungs become plans: what they require of the device, their workspace, how they launch.
// Only .cu files include this.
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/common/cuda/launch.hpp"
#include "kernels/common/device.hpp"
#include "kernels/common/variant.hpp"

namespace stepladder {

// These throw Unsupported with the reason when there is no device, or when it
void require_cuda();                            // (anything will do)
void require_compute_capability(int least);     // has less than, say, 80 for 8.0
void require_hopper();                          // is of another generation: 9.0 and no more
void require_tf32();                            // would compute in fp32 where TF32 is asked for
void require_shared_memory(std::size_t bytes);  // has less than this for one block

// For kernels that run in clusters of blocks.
template <class... Parameters>
void require_clusters(void (*kernel)(Parameters...)) {
  constexpr int first_with_them = 90;
  require_compute_capability(first_with_them);
  cudaFuncAttributes attributes;
  STEPLADDER_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
  if (attributes.ptxVersion < first_with_them)
    throw NotHere("built without clusters: STEPLADDER_CUDA_ARCHITECTURES must name 90 or later");
}

// Of the device, which there must be.
int cuda_multiprocessors();
std::size_t cuda_memory_bytes();

// A factory for functions that launch on cuda_stream() and keep nothing between runs.
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
