// Local response normalization. A work item is a block of positions of one image; it walks down the
// channels with vectors along the plane, and the window of channels moves with it.
#pragma once

#include "kernels/common/cpu/vector_loop.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/layers/cpu/simd/parallel_for.hpp"
#include "kernels/layers/layers.hpp"

namespace stepladder::layers::inline STEPLADDER_ISA {

// scale^−beta. The usual beta of 3/4 takes two square roots and no logarithm.
inline Vector to_minus_beta(const Vector& scale, float beta) {
  if (beta == 0.75F) {
    const Vector root = xsimd::sqrt(scale);
    return Vector(1.0F) / (root * xsimd::sqrt(root));
  }
  return xsimd::exp(Vector(-beta) * xsimd::log(scale));
}

// Positions of a work item, in whole vectors: long parts of each plane, since few lines of many
// planes are slow to read. A window of 5 planes stays in L1 and the workspace in L2, and threads
// share an image where there are fewer images.
inline std::int64_t block_positions(const Problem& p, int threads) {
  constexpr std::int64_t lanes = Vector::size, longest = 1024, of_workspace = 1 << 15;  // floats
  const std::int64_t most = std::clamp(of_workspace / p.channels, 4 * lanes, longest);
  const std::int64_t blocks =
      std::max(ceil_div(p.spatial, most), ceil_div(std::int64_t{threads}, p.batch));
  return ceil_div(ceil_div(p.spatial, blocks), lanes) * lanes;
}

// Calls body(first, count, thread) for each block of `positions` positions of each image, fewer in
// its last one. `first` is the index of its first element in channel 0.
template <class Body>
void for_each_position_block(const Problem& p, std::int64_t positions, int threads,
                             const Body& body) {
  const std::int64_t blocks = ceil_div(p.spatial, positions);
  parallel_for(p.batch * blocks, p.channels * positions, threads,
               [&](std::int64_t begin, std::int64_t end, int thread) {
                 for (std::int64_t item = begin; item < end; ++item) {
                   const std::int64_t s = item % blocks * positions;
                   body(item / blocks * p.channels * p.spatial + s,
                        std::min(positions, p.spatial - s), thread);
                 }
               });
}

struct Window {
  std::int64_t first, last;  // channels
  Window(const Problem& p, std::int64_t channel)
      : first(std::max<std::int64_t>(0, channel - p.size / 2)),
        last(std::min(p.channels - 1, channel + p.size / 2)) {}
};

// k + alpha / size · sum of x² over the channels of the window; x(j) loads channel j.
template <class Load>
inline Vector scale_of(const Problem& p, const Window& window, const Load& x) {
  Vector sum(0.0F);
  for (std::int64_t j = window.first; j <= window.last; ++j) {
    const Vector value = x(j);
    sum = xsimd::fma(value, value, sum);
  }
  return xsimd::fma(Vector(p.alpha / static_cast<float>(p.size)), sum, Vector(p.k));
}

inline void normalization_forward(const Problem& p, const Operands& o, int threads) {
  const std::int64_t positions = block_positions(p, threads);
  for_each_position_block(p, positions, threads, [&](std::int64_t first, std::int64_t count, int) {
    for (std::int64_t c = 0; c < p.channels; ++c) {
      const std::int64_t at = first + c * p.spatial;
      for_each_vector(0, count, [&](std::int64_t, const auto& load, const auto& store) {
        const Vector scale = scale_of(
            p, Window(p, c), [&](std::int64_t j) { return load(o.x + first + j * p.spatial); });
        store(o.y + at, load(o.x + at) * to_minus_beta(scale, p.beta));
      });
    }
  });
}

// workspace: [threads][2][channels][block_positions()], for each channel dy · scale^−beta and
// dy · y / scale. The second is computed once and summed by all windows that contain the channel.
inline void normalization_backward(const Problem& p, const Operands& o, int threads,
                                   float* workspace) {
  const Vector factor(2 * p.alpha * p.beta / static_cast<float>(p.size));
  const std::int64_t positions = block_positions(p, threads);
  const auto body = [&](std::int64_t first, std::int64_t count, int thread) {
    float* scaled_dy = workspace + 2 * thread * p.channels * positions;
    float* quotient = scaled_dy + p.channels * positions;
    for (std::int64_t c = 0; c < p.channels; ++c) {
      const std::int64_t at = first + c * p.spatial;
      for_each_vector(0, count, [&](std::int64_t i, const auto& load, const auto&) {
        const Vector scale = scale_of(
            p, Window(p, c), [&](std::int64_t j) { return load(o.x + first + j * p.spatial); });
        const Vector scaled = load(o.dy + at) * to_minus_beta(scale, p.beta);
        scaled.store_aligned(scaled_dy + c * positions + i);
        (scaled * load(o.x + at) / scale).store_aligned(quotient + c * positions + i);
      });
    }
    for (std::int64_t c = 0; c < p.channels; ++c) {
      const std::int64_t at = first + c * p.spatial;
      const Window window(p, c);
      for_each_vector(0, count, [&](std::int64_t i, const auto& load, const auto& store) {
        Vector sum(0.0F);
        for (std::int64_t j = window.first; j <= window.last; ++j)
          sum += Vector::load_aligned(quotient + j * positions + i);
        store(o.dx + at,
              Vector::load_aligned(scaled_dy + c * positions + i) - factor * load(o.x + at) * sum);
      });
    }
  };
  for_each_position_block(p, positions, threads, body);
}

}  // namespace stepladder::layers::inline STEPLADDER_ISA
