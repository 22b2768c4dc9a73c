// The ceilings of a CUDA device: its peak rate of fp32 multiply-adds, and its bandwidth when it
// copies an array larger than its caches.
#include <algorithm>
#include <chrono>
#include <cstdint>

#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/device_ceilings.hpp"

namespace stepladder {
namespace {

constexpr int launches = 7;  // the fastest counts
constexpr int chains = 16, rounds = 4096, blocks_per_multiprocessor = 8;

// Each thread has `chains` independent accumulators.
__global__ void multiply_add_kernel(float* out, float factor, float term) {
  float sum[chains];
  for (int i = 0; i < chains; ++i) sum[i] = static_cast<float>(threadIdx.x + i);
  for (int round = 0; round < rounds; ++round)
#pragma unroll
    for (int i = 0; i < chains; ++i) sum[i] = sum[i] * factor + term;
  float all = 0;
  for (int i = 0; i < chains; ++i) all += sum[i];
  out[thread_index()] = all;
}

__global__ void copy_kernel(const float4* from, float4* to, std::int64_t count) {
  const std::int64_t i = thread_index();
  if (i < count) to[i] = from[i];
}

// A GPU that idles lowers its clocks, and needs some 0.1 s of work to raise them.
template <class Launch>
void raise_clocks(Launch start) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (std::chrono::steady_clock::now() < until) {
    start();
    device()->synchronize();
  }
}

// Time of the fastest launch in seconds, after one that is not timed.
template <class Launch>
double fastest(Launch start) {
  start();
  double least = 0;
  for (int i = 0; i < launches; ++i) {
    device()->start_timer();
    start();
    const double seconds = device()->stop_timer();
    least = i == 0 ? seconds : std::min(least, seconds);
  }
  return least;
}

std::vector<DeviceCeiling> measure() {
  const auto blocks = static_cast<unsigned>(cuda_multiprocessors() * blocks_per_multiprocessor);
  const double threads = 1.0 * blocks * block_threads;
  const DeviceMemory sums = device_memory(blocks * block_threads * sizeof(float));
  const auto start_multiply_add = [&] {
    launch(multiply_add_kernel, {blocks, block_threads}, static_cast<float*>(sums.get()), 0.5F,
           1.0F);
  };
  raise_clocks(start_multiply_add);
  const double multiply_add = fastest(start_multiply_add);

  constexpr std::int64_t bytes = std::int64_t{1} << 29, vectors = bytes / sizeof(float4);
  const DeviceMemory from = device_memory(bytes), to = device_memory(bytes);
  const double copy = fastest([&] {
    launch(copy_kernel, {blocks_for(vectors), block_threads}, static_cast<float4*>(from.get()),
           static_cast<float4*>(to.get()), vectors);
  });
  return {{"fma_peak", "GFLOP/s", 2.0 * chains * rounds * threads / multiply_add / 1e9},
          {"stream_copy", "GB/s", 2.0 * bytes / copy / 1e9}};
}

const bool registered = (register_device_ceilings(measure), true);

}  // namespace
}  // namespace stepladder
