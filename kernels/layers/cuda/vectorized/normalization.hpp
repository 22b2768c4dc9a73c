// Local response normalization: a block takes some channels at 32 positions, puts the terms of their
// sums (x² forward, x² and dy · y / scale backward) into shared memory once, with those of the channels
// that their windows reach besides, and sums the windows there. Forward:
//
//     terms    channel   −2 −1 | 0 1 2 … 15 | 16 17      size 5: 20 rows of terms are read from memory
//              position 0                                for 16 rows of sums, where naive reads 80
//                       …
//                       31                               a row of 32 floats is what a warp loads
//
// Backward does it twice: 24 rows of x² give the scales of 20 channels, and these, with 20 rows of dy,
// the terms of 16 sums.
#pragma once

#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/cuda/shared_memory.hpp"
#include "kernels/layers/cuda/element.hpp"

namespace stepladder::layers {

inline constexpr int positions_together = 32, channels_together = 16, rows_of_threads = 8;

// Where a block works: blocks count positions first, then channels, then images.
struct NormalizationBlock {
  __device__ NormalizationBlock(const Problem& problem, unsigned blocks_across,
                                unsigned blocks_down)
      : p(problem),
        position(std::int64_t{blockIdx.x % blocks_across} * positions_together + threadIdx.x),
        first(std::int64_t{blockIdx.x / blocks_across % blocks_down} * channels_together),
        image(blockIdx.x / blocks_across / blocks_down) {}

  __device__ bool has(std::int64_t channel) const {
    return position < p.spatial && channel >= 0 && channel < p.channels;
  }
  __device__ std::int64_t place(std::int64_t channel) const {
    return (image * p.channels + channel) * p.spatial + position;
  }

  const Problem& p;
  std::int64_t position, first, image;  // first of the block's channels
};

// The sum over the window that begins at `row` of [rows][positions_together].
__device__ inline float window_sum(const Problem& p, const float* terms, std::int64_t row) {
  float sum = 0;
  for (std::int64_t w = 0; w < p.size; ++w)
    sum += terms[(row + w) * positions_together + threadIdx.x];
  return sum;
}

inline __global__ void __launch_bounds__(positions_together* rows_of_threads)
    normalization_forward_kernel(Problem p, Operands o, unsigned blocks_across,
                                 unsigned blocks_down) {
  float* squares = dynamic_shared<float>();  // [channels_together + size − 1][positions_together]
  const NormalizationBlock block(p, blocks_across, blocks_down);
  const std::int64_t beside = p.size / 2;
  for (std::int64_t row = threadIdx.y; row < channels_together + 2 * beside;
       row += rows_of_threads) {
    const std::int64_t c = block.first + row - beside;
    const float x = block.has(c) ? o.x[block.place(c)] : 0;
    squares[row * positions_together + threadIdx.x] = x * x;
  }
  __syncthreads();
  for (std::int64_t row = threadIdx.y; row < channels_together; row += rows_of_threads) {
    if (!block.has(block.first + row)) continue;
    const std::int64_t i = block.place(block.first + row);
    const float scale = p.k + forward_factor(p) * window_sum(p, squares, row);
    o.y[i] = o.x[i] * to_minus_beta(scale, p.beta);
  }
}

// A window of terms reaches size / 2 channels to each side, and their scales as far again.
inline __global__ void __launch_bounds__(positions_together* rows_of_threads)
    normalization_backward_kernel(Problem p, Operands o, unsigned blocks_across,
                                  unsigned blocks_down) {
  const NormalizationBlock block(p, blocks_across, blocks_down);
  const std::int64_t beside = p.size / 2;
  const std::int64_t term_rows = channels_together + 2 * beside, x_rows = term_rows + 2 * beside;
  float* squares = dynamic_shared<float>();                // [x_rows][positions_together]
  float* terms = squares + x_rows * positions_together;    // [term_rows], likewise
  float* direct = terms + term_rows * positions_together;  // [channels_together]
  for (std::int64_t row = threadIdx.y; row < x_rows; row += rows_of_threads) {
    const std::int64_t c = block.first + row - 2 * beside;
    const float x = block.has(c) ? o.x[block.place(c)] : 0;
    squares[row * positions_together + threadIdx.x] = x * x;
  }
  __syncthreads();
  for (std::int64_t row = threadIdx.y; row < term_rows; row += rows_of_threads) {
    const std::int64_t c = block.first + row - beside, own_row = row - beside;
    float scaled = 0, term = 0;
    if (block.has(c)) {
      const std::int64_t i = block.place(c);
      const float scale = p.k + forward_factor(p) * window_sum(p, squares, row);
      scaled = o.dy[i] * to_minus_beta(scale, p.beta);
      term = scaled * o.x[i] / scale;
    }
    terms[row * positions_together + threadIdx.x] = term;
    if (own_row >= 0 && own_row < channels_together)
      direct[own_row * positions_together + threadIdx.x] = scaled;
  }
  __syncthreads();
  for (std::int64_t row = threadIdx.y; row < channels_together; row += rows_of_threads) {
    if (!block.has(block.first + row)) continue;
    const std::int64_t i = block.place(block.first + row);
    o.dx[i] = direct[row * positions_together + threadIdx.x] -
              backward_factor(p) * o.x[i] * window_sum(p, terms, row);
  }
}

inline std::size_t normalization_shared_bytes(const Problem& p) {
  const std::int64_t windows = channels_together + p.size / 2 * 2;
  const std::int64_t rows = p.direction == Direction::forward
                                ? windows
                                : windows + p.size / 2 * 2 + windows + channels_together;
  return sizeof(float) * positions_together * static_cast<std::size_t>(rows);
}

inline void normalization(const Problem& p, const Operands& o) {
  const unsigned across = blocks_for(p.spatial, positions_together);
  const unsigned down = blocks_for(p.channels, channels_together);
  launch(p.direction == Direction::forward ? normalization_forward_kernel
                                           : normalization_backward_kernel,
         {across * down * static_cast<unsigned>(p.batch), dim3(positions_together, rows_of_threads),
          normalization_shared_bytes(p)},
         p, o, across, down);
}

}  // namespace stepladder::layers
