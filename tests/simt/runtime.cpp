// The runtime's calls on a device of host memory. Its limits are those of a Hopper GPU, but for the
// number of multiprocessors: a small one lets small problems reach the cases for many blocks.
#include <chrono>
#include <cstdlib>
#include <map>

#include "cuda_runtime.h"

namespace {

constexpr std::size_t shared_unasked = std::size_t{48} << 10, shared_most = std::size_t{227} << 10;

// Dynamic shared memory that kernels asked for.
std::map<stepladder::simt::Kernel, std::size_t> granted;

}  // namespace

namespace stepladder::simt {

cudaError_t set_attribute(Kernel kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  const auto bytes = static_cast<std::size_t>(value);
  if (value < 0 || bytes > shared_most) return cudaErrorInvalidValue;
  granted[kernel] = bytes;
  return cudaSuccess;
}

cudaError_t check_launch(Kernel kernel, const cudaLaunchConfig_t& config) {
  const dim3 &grid = config.gridDim, &block = config.blockDim;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  const bool fits = threads >= 1 && threads <= most_threads && block.z <= 64 && grid.x >= 1 &&
                    grid.x <= 0x7fffffffU && grid.y >= 1 && grid.y <= 65535 && grid.z >= 1 &&
                    grid.z <= 65535;
  if (!fits) return cudaErrorInvalidConfiguration;
  const std::size_t allowed = granted.contains(kernel) ? granted[kernel] : shared_unasked;
  return config.dynamicSmemBytes <= std::max(allowed, shared_unasked) ? cudaSuccess
                                                                      : cudaErrorInvalidValue;
}

}  // namespace stepladder::simt

const char* cudaGetErrorString(cudaError_t status) {
  switch (status) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
  }
  return "";
}
cudaError_t cudaGetLastError() { return cudaSuccess; }

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {.name = "SIMT emulator",
                 .major = 9,
                 .minor = 0,
                 .multiProcessorCount = 8,
                 .sharedMemPerBlockOptin = shared_most};
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  constexpr std::size_t alignment = 256;
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
  *memory = std::aligned_alloc(alignment, whole);
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  std::memset(*memory, 0xff, whole);
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int byte, std::size_t bytes, cudaStream_t) {
  if (bytes > 0) std::memset(memory, byte, bytes);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = nullptr;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new Event{};  // as long as the process, as those of cuda_device.cu
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  event->seconds = std::chrono::duration<double>(now).count();
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  *milliseconds = static_cast<float>((stop->seconds - start->seconds) * 1e3);
  return cudaSuccess;
}
