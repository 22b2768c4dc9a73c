// The runtime's calls on devices of host memory. Their limits are those of a Hopper GPU, but for the
// number of multiprocessors and the memory that it says it has: small ones let small problems reach the
// cases for many blocks and for work in several turns.
#include <cstdlib>
#include <exception>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "cuda_runtime.h"
#include "tests/simt/emulated_device.hpp"

namespace {

constexpr unsigned most_cluster = 8;  // blocks, where a kernel asks for no more
constexpr std::size_t shared_unasked = std::size_t{48} << 10, shared_most = std::size_t{227} << 10;

// Dynamic shared memory that kernels asked for.
std::map<stepladder::simt::Kernel, std::size_t> granted;

constexpr int devices = 5;
int current_device = 0;
std::set<std::pair<int, int>> peers;  // (device, whose memory it may read)

// Pinned memory: where each piece begins, and its bytes.
std::map<const std::byte*, std::size_t> pinned;

bool is_pinned(const void* memory) {
  const auto* at = static_cast<const std::byte*>(memory);
  const auto after = pinned.upper_bound(at);
  return after != pinned.begin() && at < std::prev(after)->first + std::prev(after)->second;
}

// What went wrong where no exception may leave; told when somebody waits.
std::exception_ptr untold;

// Waits as `finish` does, which a capture forbids.
template <class Finish>
cudaError_t wait(const Finish& finish) {
  if (stepladder::simt::spoils_capture()) return cudaErrorStreamCaptureUnsupported;
  if (untold != nullptr) std::rethrow_exception(std::exchange(untold, nullptr));
  finish();
  return cudaSuccess;
}

// Where no exception may leave.
cudaError_t wait_for_all() {
  try {
    return wait(stepladder::simt::finish_streams);
  } catch (...) {
    untold = std::current_exception();
    return cudaSuccess;
  }
}

bool device_is_broken = false;

}  // namespace

namespace stepladder::simt {

Calls calls;

void break_device(bool broken) { device_is_broken = broken; }

cudaError_t set_attribute(Kernel kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  const auto bytes = static_cast<std::size_t>(value);
  if (value < 0 || bytes > shared_most) return cudaErrorInvalidValue;
  granted[kernel] = bytes;
  return cudaSuccess;
}

// Clusters lie along x: no kernel asks for others.
unsigned cluster_of(const cudaLaunchConfig_t& config) {
  return config.numAttrs == 0 ? 1 : config.attrs[0].val.clusterDim.x;
}

cudaError_t check_launch(Kernel kernel, const cudaLaunchConfig_t& config) {
  const dim3 &grid = config.gridDim, &block = config.blockDim;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  const bool fits = threads >= 1 && threads <= most_threads && block.z <= 64 && grid.x >= 1 &&
                    grid.x <= 0x7fffffffU && grid.y >= 1 && grid.y <= 65535 && grid.z >= 1 &&
                    grid.z <= 65535;
  const unsigned cluster = cluster_of(config);
  const bool clusters_fit = cluster >= 1 && cluster <= most_cluster && grid.x % cluster == 0;
  if (!fits || !clusters_fit) return cudaErrorInvalidConfiguration;
  if (cluster * threads > most_threads)
    throw SimtError("the emulator has room for clusters of 1024 threads in all");
  if (device_of(config.stream) != current_device) return cudaErrorInvalidResourceHandle;
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
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
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
                 .sharedMemPerBlockOptin = shared_most,
                 .totalGlobalMem = std::size_t{8} << 20};
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  if (stepladder::simt::spoils_capture()) return cudaErrorStreamCaptureUnsupported;
  ++stepladder::simt::calls.allocations;
  constexpr std::size_t alignment = 256;
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
  *memory = std::aligned_alloc(alignment, whole);
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  std::memset(*memory, 0xff, whole);
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  const cudaError_t status = wait_for_all();  // what uses the memory is done first
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
  } else {  // the host's memory may change when the call returns
    const auto* first = static_cast<const std::byte*>(from);
    stepladder::simt::enqueue(stream, [to, held = std::vector(first, first + bytes)] {
      std::memcpy(to, held.data(), held.size());
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
  stepladder::simt::hold(stream, event);
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
  const cudaError_t status = wait_for_all();  // what waits for it
  if (status == cudaSuccess) delete event;
  return status;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (event->device != stepladder::simt::device_of(stream)) return cudaErrorInvalidResourceHandle;
  // An event of a graph alone cannot be asked for its time.
  if (stepladder::simt::is_captured(stream) != (flags == cudaEventRecordExternal)) {
    stepladder::simt::spoils_capture();
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
  const std::vector<cudaGraphNode_t>& last = stepladder::simt::last_captured(stream);
  *status = stepladder::simt::is_captured(stream) ? cudaStreamCaptureStatusActive
                                                  : cudaStreamCaptureStatusNone;
  *nodes = last.data();
  *count = last.size();
  return cudaSuccess;
}
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes,
                                                const cudaGraphEdgeData* data, std::size_t count,
                                                unsigned flags) {
  if (data != nullptr || flags != cudaStreamSetCaptureDependencies) return cudaErrorInvalidValue;
  return stepladder::simt::capture_after(stream, {nodes, nodes + count}) ? cudaSuccess
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
