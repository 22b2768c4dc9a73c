// The gradient of a bias: a sum for each channel, always of the same terms in the same order.
#pragma once

#include "kernels/common/cuda/launch.hpp"
#include "kernels/common/cuda/warp.hpp"
#include "kernels/common/cuda/fast_divisor.hpp"
#include "kernels/layers/cuda/vectorized/elementwise.hpp"

namespace stepladder::layers {

inline constexpr unsigned summing_threads = 1024;

template <int width>
struct alignas(width * sizeof(float)) Floats {
  float lane[width];
};

// Channels that are planes: a block for each. Its threads walk over the planes of all images side by
// side, `width` floats at a time; then warps add up, and the first warp adds their sums.
//
//     dy[0, c]  | thread 0 | 1 | 2 | …          unrolled: four loads of 16 bytes by 1024 threads are
//     dy[1, c]  | …                             64 KB under way, what one multiprocessor needs to
//       …                                       draw its share of the memory's bandwidth
template <int width>
__global__ void __launch_bounds__(summing_threads)
    sum_planes_kernel(Problem p, Operands o, FastDivisor steps_of_a_plane) {
  __shared__ float sums[summing_threads / warp_threads];
  const std::int64_t c = blockIdx.x;
  const auto steps = static_cast<std::uint32_t>(p.batch * p.spatial / width);
  float sum = 0;
#pragma unroll 4
  for (std::uint32_t step = threadIdx.x; step < steps; step += summing_threads) {
    const auto [n, s] = steps_of_a_plane.divide(step);
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

// Channels that are columns, spatial = 1: a block for 32 of them. Thread (x, y) adds rows y, y + 32, …
// of column x; then warp y adds up column y.
__global__ void __launch_bounds__(summing_threads) sum_columns_kernel(Problem p, Operands o) {
  __shared__ float sums[warp_threads][warp_threads + 1];  // [row][column], no two in one bank
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
    launch(sum_planes_kernel<width>, {static_cast<unsigned>(p.channels), summing_threads}, p, o,
           FastDivisor(static_cast<std::uint32_t>(p.spatial / width)));
  };
  if (p.spatial % lanes == 0 && holds_vectors(o.dy))
    start.operator()<4>();
  else
    start.operator()<1>();
}

}  // namespace stepladder::layers
