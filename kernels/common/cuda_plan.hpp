// How CUDA rungs become plans: the stream they run on, what they require of the device, their
// workspace. Only .cu files include this.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/common/cuda_check.hpp"
#include "kernels/common/device.hpp"
#include "kernels/common/variant.hpp"

namespace stepladder {

// All kernels, copies and timer events go to this one stream and so run in the order of their
// calls. There must be a device.
cudaStream_t cuda_stream();

// These throw Unsupported with the reason when there is no device, or when it
void require_cuda();                         // (anything will do)
void require_compute_capability(int least);  // has less than, say, 80 for 8.0
void require_tf32();                         // would compute in fp32 where TF32 is asked for

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

// One thread per element: kernel<<<blocks_for(count), block_threads, 0, cuda_stream()>>>(…), in
// which each thread works on element thread_index() if there is one.
inline constexpr unsigned block_threads = 256;

inline unsigned blocks_for(std::int64_t count) {
  return static_cast<unsigned>((count + block_threads - 1) / block_threads);
}

__device__ inline std::int64_t thread_index() {
  return std::int64_t{blockIdx.x} * block_threads + threadIdx.x;
}

}  // namespace stepladder
