// Replaces CUDA's header of this name when .cu files are compiled as plain C++ for the CPU. It
// holds the part of the language and of the runtime that the kernels use; other features do not
// compile and are added when a kernel needs them.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <source_location>
#include <utility>

#include "tests/simt/multiprocessor.hpp"
#include "tests/simt/streams.hpp"
#include "tests/simt/vector_types.hpp"

// --- the language --------------------------------------------------------------------------------

// The code for Hopper (sm_90a) is compiled.
#define __CUDA_ARCH__ 900
#define __CUDA_ARCH_FEAT_SM90_ALL

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __shared__                  \
  stepladder::simt::begin_shared(); \
  static thread_local
#define __forceinline__ inline
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define __grid_constant__

// --- synchronization -----------------------------------------------------------------------------

namespace stepladder::simt {

using Here = std::source_location;

inline void __syncthreads(const Here& place = Here::current()) { sync_block(place); }

inline void __syncwarp(unsigned mask = 0xffffffffU, const Here& place = Here::current()) {
  char nothing = 0;
  warp_collective(mask, "__syncwarp", place, nothing, [](const auto&) {});
}

// Each lane gets the value of lane source_of(its lane), or garbage if that lane is not in the mask.
template <class T, class SourceOf>
T shuffle(unsigned mask, const char* what, const Here& place, T value, const SourceOf& source_of) {
  struct Exchange {
    T given, taken;
    unsigned source;
  } mine{value, value, source_of(lane())};
  warp_collective(mask, what, place, mine, [](const auto& lanes) {
    for (Exchange* to : lanes) {
      if (to == nullptr) continue;
      if (const Exchange* from = lanes[to->source]; from != nullptr)
        to->taken = from->given;
      else
        std::memset(&to->taken, 0xff, sizeof(T));
    }
  });
  return mine.taken;
}

// The lanes for which `yes` holds, as bits.
inline unsigned ballot(unsigned mask, const char* what, const Here& place, bool yes) {
  struct Vote {
    bool yes;
    unsigned all;
  } mine{yes, 0};
  warp_collective(mask, what, place, mine, [](const auto& lanes) {
    unsigned all = 0;
    for (std::size_t i = 0; i < lanes.size(); ++i)
      if (lanes[i] != nullptr && lanes[i]->yes) all |= 1U << i;
    for (Vote* vote : lanes)
      if (vote != nullptr) vote->all = all;
  });
  return mine.all;
}

// Shuffles stay within groups of `width` lanes, a power of two.
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32,
              const Here& place = Here::current()) {
  const auto w = static_cast<unsigned>(width), from = static_cast<unsigned>(source);
  return shuffle(mask, "__shfl_sync", place, value,
                 [=](unsigned lane) { return lane / w * w + from % w; });
}

template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                 const Here& place = Here::current()) {
  const auto w = static_cast<unsigned>(width);
  return shuffle(mask, "__shfl_up_sync", place, value,
                 [=](unsigned lane) { return lane % w >= delta ? lane - delta : lane; });
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                   const Here& place = Here::current()) {
  const auto w = static_cast<unsigned>(width);
  return shuffle(mask, "__shfl_down_sync", place, value,
                 [=](unsigned lane) { return lane % w + delta < w ? lane + delta : lane; });
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32,
                  const Here& place = Here::current()) {
  const auto w = static_cast<unsigned>(width), flip = static_cast<unsigned>(bits);
  return shuffle(mask, "__shfl_xor_sync", place, value, [=](unsigned lane) {
    const unsigned other = (lane ^ flip) % 32;
    return other / w <= lane / w ? other : lane;
  });
}

inline unsigned __ballot_sync(unsigned mask, bool yes, const Here& place = Here::current()) {
  return ballot(mask, "__ballot_sync", place, yes);
}
inline bool __any_sync(unsigned mask, bool yes, const Here& place = Here::current()) {
  return ballot(mask, "__any_sync", place, yes) != 0;
}
inline bool __all_sync(unsigned mask, bool yes, const Here& place = Here::current()) {
  return ballot(mask, "__all_sync", place, !yes) == 0;
}

}  // namespace stepladder::simt

using stepladder::simt::__all_sync;
using stepladder::simt::__any_sync;
using stepladder::simt::__ballot_sync;
using stepladder::simt::__shfl_down_sync;
using stepladder::simt::__shfl_sync;
using stepladder::simt::__shfl_up_sync;
using stepladder::simt::__shfl_xor_sync;
using stepladder::simt::__syncthreads;
using stepladder::simt::__syncwarp;

// --- memory --------------------------------------------------------------------------------------

// One thread runs at a time, so every access is atomic and ordered.
inline void __threadfence() {}
inline void __threadfence_block() {}

template <class T>
T atomicAdd(T* at, T value) {
  return std::exchange(*at, *at + value);
}
template <class T>
T atomicMax(T* at, T value) {
  return std::exchange(*at, *at < value ? value : *at);
}
inline unsigned atomicInc(unsigned* at, unsigned most) {
  return std::exchange(*at, *at >= most ? 0 : *at + 1);
}
template <class T>
T atomicExch(T* at, T value) {
  return std::exchange(*at, value);
}
template <class T>
T atomicCAS(T* at, T expected, T value) {
  return *at == expected ? std::exchange(*at, value) : *at;
}

template <class T>
T __ldg(const T* at) {
  return *at;
}
template <class T>
T __ldcs(const T* at) {
  return *at;
}
template <class T>
T __ldcg(const T* at) {
  return *at;
}
template <class T>
void __stcs(T* at, const T& value) {
  *at = value;
}
template <class T>
void __stcg(T* at, const T& value) {
  *at = value;
}

// --- arithmetic ----------------------------------------------------------------------------------

inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline int __float_as_int(float value) { return std::bit_cast<int>(value); }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline int __popc(unsigned bits) { return std::popcount(bits); }
inline int __ffs(unsigned bits) { return bits == 0 ? 0 : std::countr_zero(bits) + 1; }
inline int __clz(unsigned bits) { return std::countl_zero(bits); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(std::uint64_t{a} * b >> 32U);
}
template <class T>
T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
T max(T a, T b) {
  return a < b ? b : a;
}

// --- the runtime ---------------------------------------------------------------------------------
// Several devices that share the host's memory. streams.hpp decides when launches and copies run.

#define CUDART_VERSION 13000

enum cudaError_t {
  cudaSuccess,
  cudaErrorInvalidValue,
  cudaErrorInvalidConfiguration,
  cudaErrorMemoryAllocation,
  cudaErrorNoDevice,
  cudaErrorInvalidDevice,
  cudaErrorInvalidResourceHandle,
  cudaErrorPeerAccessAlreadyEnabled,
  cudaErrorStreamCaptureUnsupported,
  cudaErrorStreamCaptureInvalidated,
  cudaErrorIllegalAddress,
  cudaErrorLaunchFailure
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize,
  cudaFuncAttributePreferredSharedMemoryCarveout
};
enum { cudaStreamNonBlocking = 1 };
enum { cudaEventDisableTiming = 2 };
enum { cudaEventRecordDefault = 0, cudaEventRecordExternal = 1 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal };
using cudaStream_t = stepladder::simt::Stream*;
using cudaEvent_t = stepladder::simt::Event*;
using cudaGraph_t = stepladder::simt::Graph*;
using cudaGraphExec_t = stepladder::simt::Graph*;
using cudaGraphNode_t = const stepladder::simt::GraphNode*;
struct cudaGraphEdgeData;
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
enum { cudaStreamSetCaptureDependencies = 1 };

struct cudaDeviceProp {
  char name[256];
  int major, minor, multiProcessorCount;
  std::size_t sharedMemPerBlockOptin, totalGlobalMem;
  int l2CacheSize;
};
struct cudaFuncAttributes {
  int numRegs, ptxVersion;
};
enum cudaLaunchAttributeID { cudaLaunchAttributeClusterDimension };
struct cudaLaunchAttributeValue {
  struct {
    unsigned x, y, z;
  } clusterDim;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};

const char* cudaGetErrorString(cudaError_t status);
cudaError_t cudaGetLastError();

cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaDeviceCanAccessPeer(int* possible, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetPCIBusId(char* address, int bytes, int device);

cudaError_t cudaMalloc(void** memory, std::size_t bytes);  // filled with NaN
cudaError_t cudaFree(void* memory);
cudaError_t cudaMallocHost(void** memory, std::size_t bytes);  // filled with NaN
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                std::size_t bytes, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* memory, int byte, std::size_t bytes, cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop);

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
// The nodes on which the next captured work depends. Edge data and other flags are not supported.
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** nodes, const cudaGraphEdgeData** data,
                                     std::size_t* count);
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes,
                                                const cudaGraphEdgeData* data, std::size_t count,
                                                unsigned flags);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph);

namespace stepladder::simt {
using Kernel = void (*)();
cudaError_t set_attribute(Kernel kernel, cudaFuncAttribute attribute, int value);
cudaError_t check_launch(Kernel kernel, const cudaLaunchConfig_t& config);
unsigned cluster_of(const cudaLaunchConfig_t& config);
}  // namespace stepladder::simt

template <class... Parameters>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*)(Parameters...)) {
  *attributes = {.numRegs = 255, .ptxVersion = 90};  // as if compiled for Hopper
  return cudaSuccess;
}

inline cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute,
                                        int value) {
  return stepladder::simt::set_attribute(reinterpret_cast<stepladder::simt::Kernel>(kernel),
                                         attribute, value);
}

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  const cudaError_t status =
      stepladder::simt::check_launch(reinterpret_cast<stepladder::simt::Kernel>(kernel), *config);
  if (status != cudaSuccess) return status;
  ++stepladder::simt::calls.launches;
  [&](Parameters... parameters) {
    stepladder::simt::enqueue(
        config->stream,
        [launch = stepladder::simt::Launch{
             config->gridDim, config->blockDim, stepladder::simt::cluster_of(*config),
             config->dynamicSmemBytes, [kernel, parameters...] { kernel(parameters...); }}] {
          stepladder::simt::run(launch);
        });
  }(std::forward<Arguments>(arguments)...);
  return cudaSuccess;
}
