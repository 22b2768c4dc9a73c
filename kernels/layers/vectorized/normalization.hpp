// Local response normalization: a block takes some channels at 32 positions, puts the terms of their
// sums (x² forward, dy · y / scale backward) into shared memory once, with those of the channels that
// their windows reach besides, and sums the windows there.
//
//     terms    channel   −2 −1 | 0 1 2 … 15 | 16 17      size 5: 20 rows of terms are read from memory
//              position 0                                for 16 rows of sums, where naive reads 80
//                       …
//                       31                               a row of 32 floats is what a warp loads
#pragma once

#include "kernels/common/cuda_plan.hpp"
#include "kernels/common/cuda_shared.hpp"
#include "kernels/layers/cuda_element.hpp"

namespace stepladder::layers {

inline constexpr int positions_together = 32, channels_together = 16, rows_of_threads = 8;

inline std::size_t normalization_shared_bytes(const Problem& p) {
  return sizeof(float) * positions_together *
         static_cast<std::size_t>(channels_together + p.size - 1);
}

template <Direction direction>
__device__ float term(const Operands& o, std::int64_t i) {
  if constexpr (direction == Direction::forward)
    return o.x[i] * o.x[i];
  else
    return o.dy[i] * o.y[i] / o.scale[i];
}

template <Direction direction>
__device__ void finish(const Problem& p, const Operands& o, std::int64_t i, float sum) {
  if constexpr (direction == Direction::forward) {
    const float scale = p.k + forward_factor(p) * sum;
    o.scale[i] = scale;
    o.y[i] = o.x[i] * to_minus_beta(scale, p.beta);
  } else {
    o.dx[i] = o.dy[i] * to_minus_beta(o.scale[i], p.beta) - backward_factor(p) * o.x[i] * sum;
  }
}

// Blocks count positions first, then channels, then images.
template <Direction direction>
__global__ void __launch_bounds__(positions_together* rows_of_threads)
    normalization_kernel(Problem p, Operands o, unsigned blocks_across, unsigned blocks_down) {
  float* terms = dynamic_shared<float>();  // [channels_together + size − 1][positions_together]
  const std::int64_t s =
      std::int64_t{blockIdx.x % blocks_across} * positions_together + threadIdx.x;
  const std::int64_t first =
      std::int64_t{blockIdx.x / blocks_across % blocks_down} * channels_together;
  const std::int64_t n = blockIdx.x / blocks_across / blocks_down;
  const auto place_of = [&](std::int64_t c) { return (n * p.channels + c) * p.spatial + s; };

  for (std::int64_t row = threadIdx.y; row < channels_together + p.size - 1;
       row += rows_of_threads) {
    const std::int64_t c = first + row - p.size / 2;
    const bool inside = s < p.spatial && c >= 0 && c < p.channels;
    terms[row * positions_together + threadIdx.x] = inside ? term<direction>(o, place_of(c)) : 0;
  }
  __syncthreads();
  if (s >= p.spatial) return;
  for (std::int64_t row = threadIdx.y; row < channels_together && first + row < p.channels;
       row += rows_of_threads) {
    float sum = 0;
    for (std::int64_t w = 0; w < p.size; ++w)
      sum += terms[(row + w) * positions_together + threadIdx.x];
    finish<direction>(p, o, place_of(first + row), sum);
  }
}

inline void normalization(const Problem& p, const Operands& o) {
  const unsigned across = blocks_for(p.spatial, positions_together);
  const unsigned down = blocks_for(p.channels, channels_together);
  const auto start = [&]<Direction direction>() {
    launch(normalization_kernel<direction>,
           {across * down * static_cast<unsigned>(p.batch),
            dim3(positions_together, rows_of_threads), normalization_shared_bytes(p)},
           p, o, across, down);
  };
  if (p.direction == Direction::forward)
    start.operator()<Direction::forward>();
  else
    start.operator()<Direction::backward>();
}

}  // namespace stepladder::layers
