// The ceilings of a CUDA device: its peak rates of fp32 multiply-adds and of TF32 products on the
// tensor cores, and its bandwidth when it copies an array larger than its caches.
#include <algorithm>
#include <chrono>
#include <cstdint>

#include "kernels/common/cuda/mma.hpp"
#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/cuda/shared_memory.hpp"
#include "kernels/common/cuda/swizzle.hpp"
#include "kernels/common/cuda/wgmma.hpp"
#include "kernels/common/cuda/wgmma_ring.hpp"
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

// --- TF32 products without loads -----------------------------------------------------------------
//
// The operands do not change, so their bits toggle less, and take less power, than those of a real
// product: the rate is a roof.

// The bits of an operand between 1 and 2.
__device__ std::uint32_t operand_bits(unsigned number) {
  return 0x3f800000U | (number * 2654435761U) >> 9;
}

// Each warp has `tiles` independent accumulators of 16 x 8.
constexpr int tiles = 4;

__global__ void mma_kernel(float* out) {
  std::uint32_t a[4], b[2];
  for (unsigned i = 0; i < 4; ++i) a[i] = operand_bits(threadIdx.x * 6 + i);
  for (unsigned i = 0; i < 2; ++i) b[i] = operand_bits(threadIdx.x * 6 + 4 + i);
  float sum[tiles][4] = {};
  for (int round = 0; round < rounds; ++round)
#pragma unroll
    for (auto& tile : sum) mma_16x8x8_tf32(tile, a, b);
  float all = 0;
  for (const auto& tile : sum)
    for (const float value : tile) all += value;
  out[thread_index()] = all;
}

// One block of four warpgroups on each multiprocessor: while one waits for its products, those of
// the others run. In each round a warpgroup adds `products` products to its 64 x 128 accumulators.
// A is in registers, B in shared memory, as in the rungs. Empty for other GPUs.
constexpr int warpgroups = 4, products = 32, columns = 128;
constexpr int wgmma_rounds = 512;

__global__ void __launch_bounds__(warpgroups* warpgroup_threads, 1)
    wgmma_kernel([[maybe_unused]] float* out) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  auto* const b = dynamic_shared<std::uint32_t>();  // [columns, 32]
  for (unsigned i = threadIdx.x; i < columns * swizzled_row; i += blockDim.x)
    b[i] = operand_bits(i);
  fence_shared_writes();
  __syncthreads();
  std::uint32_t a[4];
  for (unsigned i = 0; i < 4; ++i) a[i] = operand_bits(threadIdx.x * 4 + i);
  const std::uint64_t descriptor = wgmma_descriptor(shared_address(b));
  float sum[columns / 2] = {};
  for (int round = 0; round < wgmma_rounds; ++round) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < products; ++i)
      wgmma_64x128x8_tf32(sum, a, advance_descriptor(descriptor, 0, i % 4 * 8));
    wgmma_wait();
  }
  fence_accumulators(sum);
  float all = 0;
  for (const float value : sum) all += value;
  out[std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x] = all;
#endif
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

// Whether the plan of a rung with this requirement would accept the device.
template <class Require>
bool holds(const Require& require) {
  try {
    require();
    return true;
  } catch (const NotHere&) {
    return false;
  }
}

// FLOP/s of the faster of the instructions that run here: mma.sync, or wgmma, without which Hopper
// reaches only a part of its peak. 0 without TF32.
double tf32_peak() {
  if (!holds(require_tf32)) return 0;
  cudaFuncAttributes attributes;
  STEPLADDER_CUDA_CHECK(cudaFuncGetAttributes(&attributes, mma_kernel));
  if (attributes.ptxVersion < 80) return 0;  // built for older GPUs: the kernels are empty
  const auto multiprocessors = static_cast<unsigned>(cuda_multiprocessors());
  const unsigned blocks = multiprocessors * blocks_per_multiprocessor;
  const DeviceMemory sums = device_memory(blocks * block_threads * sizeof(float));
  auto* const out = static_cast<float*>(sums.get());
  const double mma = fastest([&] { launch(mma_kernel, {blocks, block_threads}, out); });
  const double rate = 2.0 * 16 * 8 * 8 * tiles * rounds * blocks * (block_threads / 32) / mma;

  const auto require_wgmma = [] {
    require_hopper();
    require_wgmma_code(wgmma_kernel, columns / 2);
  };
  if (!holds(require_wgmma)) return rate;
  const double wgmma = fastest([&] {
    launch(
        wgmma_kernel,
        {multiprocessors, warpgroups * warpgroup_threads, columns * swizzled_row * sizeof(float)},
        out);
  });
  return std::max(rate, 2.0 * 64 * columns * 8 * products * wgmma_rounds * warpgroups *
                            multiprocessors / wgmma);
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
  std::vector<DeviceCeiling> all = {
      {"fma_peak", "GFLOP/s", 2.0 * chains * rounds * threads / multiply_add / 1e9},
      {"stream_copy", "GB/s", 2.0 * bytes / copy / 1e9}};
  if (const double peak = tf32_peak(); peak > 0)
    all.push_back({"tf32_peak", "GFLOP/s", peak / 1e9});
  return all;
}

const bool registered = (register_device_ceilings(measure), true);

}  // namespace
}  // namespace stepladder
