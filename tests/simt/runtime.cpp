// The CUDA runtime on emulated devices with host memory. Limits are those of a Hopper GPU, except
// the number of multiprocessors and the memory sizes: they are small, so that small problems cover
// the code for many blocks and for workspaces that are too small for the whole batch.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "cuda_runtime.h"
#include "kernels/common/integer_math.hpp"
#include "tests/simt/emulated_device.hpp"

namespace {

constexpr unsigned max_cluster = 8;  // blocks; the portable cluster size
constexpr std::size_t default_shared = std::size_t{48} << 10, max_shared = std::size_t{227} << 10;

// cudaFuncAttributeMaxDynamicSharedMemorySize of the kernels that set it.
std::map<stepladder::simt::Kernel, std::size_t> shared_limits;

constexpr int devices = 5;
int current_device = 0;
std::set<std::pair<int, int>> peers;  // (device, peer whose memory it may access)

// Pinned memory: the start and the bytes of each allocation.
std::map<const std::byte*, std::size_t> pinned;

bool is_pinned(const void* memory) {
  const auto* at = static_cast<const std::byte*>(memory);
  const auto after = pinned.upper_bound(at);
  return after != pinned.begin() && at < std::prev(after)->first + std::prev(after)->second;
}

// An exception in a call that must not throw; the next call that waits throws it.
std::exception_ptr pending_error;

// Calls finish(). Waiting is not permitted during a capture.
template <class Finish>
cudaError_t wait(const Finish& finish) {
  if (stepladder::simt::invalidate_capture()) return cudaErrorStreamCaptureUnsupported;
  if (pending_error != nullptr) std::rethrow_exception(std::exchange(pending_error, nullptr));
  finish();
  return cudaSuccess;
}

// For calls that must not throw, since destructors make them.
cudaError_t wait_for_all() {
  try {
    return wait(stepladder::simt::finish_streams);
  } catch (...) {
    pending_error = std::current_exception();
    return cudaSuccess;
  }
}

bool device_is_broken = false;

}  // namespace

namespace stepladder::simt {

Calls calls;

void break_device(bool broken) { device_is_broken = broken; }

cudaError_t set_attribute(Kernel kernel, cudaFuncAttribute attribute, int value) {
  ++calls.attributes;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  const auto bytes = static_cast<std::size_t>(value);
  if (value < 0 || bytes > max_shared) return cudaErrorInvalidValue;
  shared_limits[kernel] = bytes;
  return cudaSuccess;
}

// Only clusters along x are supported.
unsigned cluster_of(const cudaLaunchConfig_t& config) {
  return config.numAttrs == 0 ? 1 : config.attrs[0].val.clusterDim.x;
}

cudaError_t check_launch(Kernel kernel, const cudaLaunchConfig_t& config) {
  const dim3 &grid = config.gridDim, &block = config.blockDim;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  const bool fits = threads >= 1 && threads <= max_threads && block.z <= 64 && grid.x >= 1 &&
                    grid.x <= 0x7fffffffU && grid.y >= 1 && grid.y <= 65535 && grid.z >= 1 &&
                    grid.z <= 65535;
  const unsigned cluster = cluster_of(config);
  const bool clusters_fit = cluster >= 1 && cluster <= max_cluster && grid.x % cluster == 0;
  if (!fits || !clusters_fit) return cudaErrorInvalidConfiguration;
  if (cluster * threads > max_threads)
    throw SimtError("the emulator runs clusters of at most 1024 threads");
  if (device_of(config.stream) != current_device) return cudaErrorInvalidResourceHandle;
  const std::size_t limit = shared_limits.contains(kernel) ? shared_limits[kernel] : default_shared;
  return config.dynamicSmemBytes <= std::max(limit, default_shared) ? cudaSuccess
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
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorPeerAccessAlreadyEnabled:
      return "peer access is already enabled";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
  }
  return "";
}
cudaError_t cudaGetLastError() { return cudaSuccess; }

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = devices;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= devices) return cudaErrorInvalidDevice;
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* possible, int device, int peer) {
  *possible = device != peer ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  if (peer == current_device || peer < 0 || peer >= devices) return cudaErrorInvalidDevice;
  return peers.insert({current_device, peer}).second ? cudaSuccess
                                                     : cudaErrorPeerAccessAlreadyEnabled;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {.name = "SIMT emulator",
                 .major = 9,
                 .minor = 0,
                 .multiProcessorCount = stepladder::simt::multiprocessors,
                 .sharedMemPerBlockOptin = max_shared,
                 .totalGlobalMem = std::size_t{8} << 20,
                 .l2CacheSize = stepladder::simt::l2_bytes};
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* address, int bytes, int device) {
  std::snprintf(address, static_cast<std::size_t>(bytes), "0000:%02X:00.0", device);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  if (stepladder::simt::invalidate_capture()) return cudaErrorStreamCaptureUnsupported;
  ++stepladder::simt::calls.allocations;
  constexpr std::size_t alignment = 256;
  const std::size_t whole = stepladder::round_up(bytes, alignment);
  *memory = std::aligned_alloc(alignment, whole);
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  std::memset(*memory, 0xff, whole);
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  const cudaError_t status = wait_for_all();  // submitted work may use the memory
  if (status == cudaSuccess) std::free(memory);
  return status;
}
cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  const cudaError_t status = cudaMalloc(memory, bytes);
  if (status == cudaSuccess) pinned[static_cast<const std::byte*>(*memory)] = bytes;
  return status;
}
cudaError_t cudaFreeHost(void* memory) {
  const cudaError_t status = wait_for_all();
  if (status != cudaSuccess) return status;
  pinned.erase(static_cast<const std::byte*>(memory));
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if (kind != cudaMemcpyHostToDevice || is_pinned(from)) {
    stepladder::simt::enqueue(stream, [=] { std::memcpy(to, from, bytes); });
  } else {  // pageable memory may change after the call returns
    const auto* first = static_cast<const std::byte*>(from);
    stepladder::simt::enqueue(stream, [to, staged = std::vector(first, first + bytes)] {
      std::memcpy(to, staged.data(), staged.size());
    });
  }
  return cudaSuccess;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                                cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}
cudaError_t cudaMemsetAsync(void* memory, int byte, std::size_t bytes, cudaStream_t stream) {
  if (bytes > 0) stepladder::simt::enqueue(stream, [=] { std::memset(memory, byte, bytes); });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = stepladder::simt::new_stream(current_device);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (device_is_broken) return cudaErrorIllegalAddress;
  return wait([stream] { stepladder::simt::finish(stream); });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  stepladder::simt::wait_for_event(stream, event);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new stepladder::simt::Event{.device = current_device};
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return cudaEventCreate(event);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const cudaError_t status = wait_for_all();  // streams may wait for it
  if (status == cudaSuccess) delete event;
  return status;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (event->device != stepladder::simt::device_of(stream)) return cudaErrorInvalidResourceHandle;
  // Events of a graph must be external, or cudaEventElapsedTime cannot use them.
  if (stepladder::simt::is_captured(stream) != (flags == cudaEventRecordExternal)) {
    stepladder::simt::invalidate_capture();
    return cudaErrorStreamCaptureUnsupported;
  }
  stepladder::simt::record(event, stream);
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return wait([event] { stepladder::simt::finish(event); });
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  *milliseconds = static_cast<float>((stop->seconds - start->seconds) * 1e3);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  stepladder::simt::begin_capture(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = stepladder::simt::end_capture(stream).release();
  return *graph != nullptr ? cudaSuccess : cudaErrorStreamCaptureInvalidated;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long*, cudaGraph_t*,
                                     const cudaGraphNode_t** nodes, const cudaGraphEdgeData**,
                                     std::size_t* count) {
  const std::vector<cudaGraphNode_t>& dependencies = stepladder::simt::capture_dependencies(stream);
  *status = stepladder::simt::is_captured(stream) ? cudaStreamCaptureStatusActive
                                                  : cudaStreamCaptureStatusNone;
  *nodes = dependencies.data();
  *count = dependencies.size();
  return cudaSuccess;
}
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes,
                                                const cudaGraphEdgeData* data, std::size_t count,
                                                unsigned flags) {
  if (data != nullptr || flags != cudaStreamSetCaptureDependencies) return cudaErrorInvalidValue;
  return stepladder::simt::set_capture_dependencies(stream, {nodes, nodes + count})
             ? cudaSuccess
             : cudaErrorInvalidValue;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  *executable = new stepladder::simt::Graph(*graph);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  ++stepladder::simt::calls.graphs;
  stepladder::simt::launch(*graph, stream);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete graph;
  return cudaSuccess;
}
