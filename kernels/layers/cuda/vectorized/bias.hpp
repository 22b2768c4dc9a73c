// The gradient of the bias: one sum per channel, in an order that depends on the problem alone.
#pragma once

#include "kernels/common/cuda/fast_divisor.hpp"
#include "kernels/common/cuda/launch.hpp"
#include "kernels/common/cuda/warp.hpp"
#include "kernels/layers/cuda/vectorized/elementwise.hpp"

namespace stepladder::layers {

inline constexpr unsigned sum_threads = 1024;  // of a block

template <int width>
struct alignas(width * sizeof(float)) Floats {
  float lane[width];
};

// spatial > 1: one block per channel. Thread t loads vectors t, t + 1024, … of the channel's
// planes, `width` floats each; then each warp sums its threads, and the first warp sums the warps.
//
//     dy[0, c]   | thread 0 | thread 1 | thread 2 | …
//     dy[1, c]   | …
//
// The loop is unrolled by four: four loads of 16 bytes by 1024 threads are 64 KB in flight, enough
// for one multiprocessor's share of the memory bandwidth.
template <int width>
__global__ void __launch_bounds__(sum_threads)
    sum_planes_kernel(Problem p, Operands o, FastDivisor steps_per_plane) {
  __shared__ float sums[sum_threads / warp_threads];
  const std::int64_t c = blockIdx.x;
  const auto steps = static_cast<std::uint32_t>(p.batch * p.spatial / width);
  float sum = 0;
#pragma unroll 4
  for (std::uint32_t step = threadIdx.x; step < steps; step += sum_threads) {
    const auto [n, s] = steps_per_plane.divide(step);
    const float* dy = o.dy + (n * p.channels + c) * p.spatial + s * width;
    const auto loaded = *reinterpret_cast<const Floats<width>*>(dy);
    for (const float lane : loaded.lane) sum += lane;
  }
  sum = warp_sum(sum);
  if (threadIdx.x % warp_threads == 0) sums[threadIdx.x / warp_threads] = sum;
  __syncthreads();
  if (threadIdx.x >= warp_threads) return;
  sum = warp_sum(sums[threadIdx.x]);
  if (threadIdx.x == 0) o.dbias[c] = sum;
}

// spatial = 1: one block per 32 channels. Thread (x, y) sums rows y, y + 32, … of column x; then
// warp y sums column y.
__global__ void __launch_bounds__(sum_threads) sum_columns_kernel(Problem p, Operands o) {
  // [row][column], padded against bank conflicts
  __shared__ float sums[warp_threads][warp_threads + 1];
  const std::int64_t first = std::int64_t{blockIdx.x} * warp_threads, c = first + threadIdx.x;
  float sum = 0;
  if (c < p.channels)
#pragma unroll 4
    for (std::int64_t n = threadIdx.y; n < p.batch; n += warp_threads)
      sum += o.dy[n * p.channels + c];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  sum = warp_sum(sums[threadIdx.x][threadIdx.y]);
  if (threadIdx.x == 0 && first + threadIdx.y < p.channels) o.dbias[first + threadIdx.y] = sum;
}

inline void bias_backward(const Problem& p, const Operands& o) {
  if (p.spatial == 1) {
    launch(sum_columns_kernel,
           {blocks_for(p.channels, warp_threads), dim3(warp_threads, warp_threads)}, p, o);
    return;
  }
  const auto start = [&]<int width>() {
    launch(sum_planes_kernel<width>, {static_cast<unsigned>(p.channels), sum_threads}, p, o,
           FastDivisor(static_cast<std::uint32_t>(p.spatial / width)));
  };
  if (p.spatial % lanes == 0 && is_vector_aligned(o.dy))
    start.operator()<4>();
  else
    start.operator()<1>();
}

}  // namespace stepladder::layers
