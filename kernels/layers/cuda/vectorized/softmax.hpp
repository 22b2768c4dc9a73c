// Softmax with cross entropy and its gradient: one warp per row. The maximum of the row is
// subtracted, so that no exponential overflows.
#pragma once

#include "kernels/common/cuda/launch.hpp"
#include "kernels/common/cuda/warp.hpp"
#include "kernels/layers/cuda/element.hpp"

namespace stepladder::layers {

inline constexpr int rows_per_block = 4;

__global__ void __launch_bounds__(rows_per_block* warp_threads)
    softmax_kernel(Problem p, Operands o) {
  const std::int64_t n = std::int64_t{blockIdx.x} * rows_per_block + threadIdx.y;
  if (n >= p.batch) return;
  const float* x = o.x + n * p.channels;  // [channels]
  float* y = o.y + n * p.channels;        // [channels]
  float* dx = o.dx + n * p.channels;      // [channels]
  const auto over_channels = [&](const auto& body) {
    for (std::int64_t c = threadIdx.x; c < p.channels; c += warp_threads) body(c);
  };
  float largest = -INFINITY, sum = 0;
  over_channels([&](std::int64_t c) { largest = fmaxf(largest, x[c]); });
  largest = warp_max(largest);
  over_channels([&](std::int64_t c) { sum += y[c] = std::exp(x[c] - largest); });
  sum = warp_sum(sum);
  over_channels([&](std::int64_t c) {
    y[c] /= sum;
    dx[c] = (y[c] - (c == o.labels[n] ? 1.0F : 0.0F)) / static_cast<float>(p.batch);
  });
  if (threadIdx.x == 0) o.loss[n] = std::log(sum) - (x[o.labels[n]] - largest);
}

inline void softmax(const Problem& p, const Operands& o) {
  launch(softmax_kernel, {blocks_for(p.batch, rows_per_block), dim3(warp_threads, rows_per_block)},
         p, o);
}

}  // namespace stepladder::layers
