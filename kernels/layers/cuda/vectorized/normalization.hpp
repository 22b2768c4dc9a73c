// Local response normalization. A block computes 16 channels at 32 positions. It stores the terms
// of the window sums (forward: x²; backward: x² and dy · y / scale) in shared memory once,
// including a halo of size / 2 channels on each side, and sums the windows there. Forward, with
// size 5:
//
//                    halo     outputs        halo
//     channel       −2 −1 |  0  1 …  15  | 16 17      20 rows are loaded for 16 rows of sums;
//     position 0                                      naive loads 80
//              …
//             31                                      one warp loads one row of 32 floats
//
// Backward has two such stages: 24 rows of x² give the scales of 20 channels; these and 20 rows of
// dy give the terms of 16 sums.
#pragma once

#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/cuda/shared_memory.hpp"
#include "kernels/layers/cuda/element.hpp"

namespace stepladder::layers {

inline constexpr int block_positions = 32, block_channels = 16, thread_rows = 8;

// The positions, channels and image of a block. Position blocks vary fastest, then channel blocks,
// then images.
struct NormalizationBlock {
  __device__ NormalizationBlock(const Problem& problem, unsigned position_blocks,
                                unsigned channel_blocks)
      : p(problem),
        position(std::int64_t{blockIdx.x % position_blocks} * block_positions + threadIdx.x),
        first(std::int64_t{blockIdx.x / position_blocks % channel_blocks} * block_channels),
        image(blockIdx.x / position_blocks / channel_blocks) {}

  __device__ bool has(std::int64_t channel) const {
    return position < p.spatial && channel >= 0 && channel < p.channels;
  }
  __device__ std::int64_t index(std::int64_t channel) const {
    return (image * p.channels + channel) * p.spatial + position;
  }

  const Problem& p;
  std::int64_t position;  // of this thread
  std::int64_t first;     // channel of the block
  std::int64_t image;
};

// The sum of rows [row, row + size) of terms [rows][block_positions], at this thread's position.
__device__ inline float window_sum(const Problem& p, const float* terms, std::int64_t row) {
  float sum = 0;
  for (std::int64_t w = 0; w < p.size; ++w) sum += terms[(row + w) * block_positions + threadIdx.x];
  return sum;
}

static __global__ void __launch_bounds__(block_positions* thread_rows)
    normalization_forward_kernel(Problem p, Operands o, unsigned position_blocks,
                                 unsigned channel_blocks) {
  float* squares = dynamic_shared<float>();  // [block_channels + size − 1][block_positions]
  const NormalizationBlock block(p, position_blocks, channel_blocks);
  const std::int64_t halo = p.size / 2;
  for (std::int64_t row = threadIdx.y; row < block_channels + 2 * halo; row += thread_rows) {
    const std::int64_t c = block.first + row - halo;
    const float x = block.has(c) ? o.x[block.index(c)] : 0;
    squares[row * block_positions + threadIdx.x] = x * x;
  }
  __syncthreads();
  for (std::int64_t row = threadIdx.y; row < block_channels; row += thread_rows) {
    if (!block.has(block.first + row)) continue;
    const std::int64_t i = block.index(block.first + row);
    const float scale = p.k + forward_factor(p) * window_sum(p, squares, row);
    o.y[i] = o.x[i] * to_minus_beta(scale, p.beta);
  }
}

// The windows of terms need a halo of size / 2 channels on each side; their scales need another
// one.
static __global__ void __launch_bounds__(block_positions* thread_rows)
    normalization_backward_kernel(Problem p, Operands o, unsigned position_blocks,
                                  unsigned channel_blocks) {
  const NormalizationBlock block(p, position_blocks, channel_blocks);
  const std::int64_t halo = p.size / 2;
  const std::int64_t term_rows = block_channels + 2 * halo, x_rows = term_rows + 2 * halo;
  float* squares = dynamic_shared<float>();                // [x_rows][block_positions]
  float* terms = squares + x_rows * block_positions;       // [term_rows][block_positions]
  float* scaled_dy = terms + term_rows * block_positions;  // [block_channels][block_positions]
  for (std::int64_t row = threadIdx.y; row < x_rows; row += thread_rows) {
    const std::int64_t c = block.first + row - 2 * halo;
    const float x = block.has(c) ? o.x[block.index(c)] : 0;
    squares[row * block_positions + threadIdx.x] = x * x;
  }
  __syncthreads();
  for (std::int64_t row = threadIdx.y; row < term_rows; row += thread_rows) {
    const std::int64_t c = block.first + row - halo, own_row = row - halo;
    float scaled = 0, term = 0;
    if (block.has(c)) {
      const std::int64_t i = block.index(c);
      const float scale = p.k + forward_factor(p) * window_sum(p, squares, row);
      scaled = o.dy[i] * to_minus_beta(scale, p.beta);
      term = scaled * o.x[i] / scale;
    }
    terms[row * block_positions + threadIdx.x] = term;
    if (own_row >= 0 && own_row < block_channels)
      scaled_dy[own_row * block_positions + threadIdx.x] = scaled;
  }
  __syncthreads();
  for (std::int64_t row = threadIdx.y; row < block_channels; row += thread_rows) {
    if (!block.has(block.first + row)) continue;
    const std::int64_t i = block.index(block.first + row);
    o.dx[i] = scaled_dy[row * block_positions + threadIdx.x] -
              backward_factor(p) * o.x[i] * window_sum(p, terms, row);
  }
}

inline std::size_t normalization_shared_bytes(const Problem& p) {
  const std::int64_t windows = block_channels + p.size / 2 * 2;
  const std::int64_t rows = p.direction == Direction::forward
                                ? windows
                                : windows + p.size / 2 * 2 + windows + block_channels;
  return sizeof(float) * block_positions * static_cast<std::size_t>(rows);
}

inline void normalization(const Problem& p, const Operands& o) {
  const unsigned position_blocks = blocks_for(p.spatial, block_positions);
  const unsigned channel_blocks = blocks_for(p.channels, block_channels);
  launch(p.direction == Direction::forward ? normalization_forward_kernel
                                           : normalization_backward_kernel,
         {position_blocks * channel_blocks * static_cast<unsigned>(p.batch),
          dim3(block_positions, thread_rows), normalization_shared_bytes(p)},
         p, o, position_blocks, channel_blocks);
}

}  // namespace stepladder::layers
