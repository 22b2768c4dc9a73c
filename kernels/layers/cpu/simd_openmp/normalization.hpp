// Local response normalization: vectors along the plane go down the channels, where their window
// moves. A work item is a few vectors of positions of one image.
#pragma once

#include "kernels/layers/layers.hpp"
#include "kernels/layers/cpu/simd_openmp/parallel_for.hpp"

namespace stepladder::layers {

// scale^−beta. The usual beta, 3/4, needs two roots and no logarithm.
template <class V>
inline V to_minus_beta(const V& scale, float beta) {
  if (beta == 0.75F) {
    const V root = xsimd::sqrt(scale);
    return V(1.0F) / (root * xsimd::sqrt(root));
  }
  return xsimd::exp(V(-beta) * xsimd::log(scale));
}

// Positions that go down the channels together: some whole cache lines of each plane, or memory would
// be read a line here and a line there.
template <class V>
inline constexpr std::int64_t positions_together = 4 * static_cast<std::int64_t>(V::size);

// Calls body(first, count, part) for every image and `count` positions of it; `first` is the place
// of channel 0.
template <class V, class Body>
void over_positions(const Problem& p, int threads, const Body& body) {
  constexpr std::int64_t together = positions_together<V>;
  const std::int64_t blocks = (p.spatial + together - 1) / together;
  in_stretches<V>(p.batch * blocks, p.channels * together, threads,
                  [&](std::int64_t begin, std::int64_t end, int part) {
                    for (std::int64_t item = begin; item < end; ++item) {
                      const std::int64_t s = item % blocks * together;
                      body(item / blocks * p.channels * p.spatial + s,
                           std::min(together, p.spatial - s), part);
                    }
                  });
}

struct Window {  // of channels
  std::int64_t first, last;
  Window(const Problem& p, std::int64_t channel)
      : first(std::max<std::int64_t>(0, channel - p.size / 2)),
        last(std::min(p.channels - 1, channel + p.size / 2)) {}
};

// k + alpha / size · sum x² over the channels of the window; x(j) loads those of channel j.
template <class V, class Load>
inline V scale_of(const Problem& p, const Window& window, const Load& x) {
  V sum(0.0F);
  for (std::int64_t j = window.first; j <= window.last; ++j) {
    const V value = x(j);
    sum = xsimd::fma(value, value, sum);
  }
  return xsimd::fma(V(p.alpha / static_cast<float>(p.size)), sum, V(p.k));
}

template <class V>
void normalization_forward(const Problem& p, const Operands& o, int threads) {
  over_positions<V>(p, threads, [&](std::int64_t first, std::int64_t count, int) {
    for (std::int64_t c = 0; c < p.channels; ++c) {
      const std::int64_t at = first + c * p.spatial;
      over_vectors<V>(count, [&](std::int64_t, const auto& load, const auto& store) {
        const V scale = scale_of<V>(
            p, Window(p, c), [&](std::int64_t j) { return load(o.x + first + j * p.spatial); });
        store(o.y + at, load(o.x + at) * to_minus_beta(scale, p.beta));
      });
    }
  });
}

// workspace: [threads][2][channels][positions_together], dy · scale^−beta and dy · y / scale, which each
// window shares with its neighbours.
template <class V>
void normalization_backward(const Problem& p, const Operands& o, int threads, float* workspace) {
  constexpr std::int64_t together = positions_together<V>;
  const V factor(2 * p.alpha * p.beta / static_cast<float>(p.size));
  over_positions<V>(p, threads, [&](std::int64_t first, std::int64_t count, int part) {
    float* direct = workspace + 2 * part * p.channels * together;
    float* quotient = direct + p.channels * together;
    for (std::int64_t c = 0; c < p.channels; ++c) {
      const std::int64_t at = first + c * p.spatial;
      over_vectors<V>(count, [&](std::int64_t i, const auto& load, const auto&) {
        const V scale = scale_of<V>(
            p, Window(p, c), [&](std::int64_t j) { return load(o.x + first + j * p.spatial); });
        const V scaled = load(o.dy + at) * to_minus_beta(scale, p.beta);
        scaled.store_aligned(direct + c * together + i);
        (scaled * load(o.x + at) / scale).store_aligned(quotient + c * together + i);
      });
    }
    for (std::int64_t c = 0; c < p.channels; ++c) {
      const std::int64_t at = first + c * p.spatial;
      const Window window(p, c);
      over_vectors<V>(count, [&](std::int64_t i, const auto& load, const auto& store) {
        V sum(0.0F);
        for (std::int64_t j = window.first; j <= window.last; ++j)
          sum += V::load_aligned(quotient + j * together + i);
        store(o.dx + at,
              V::load_aligned(direct + c * together + i) - factor * load(o.x + at) * sum);
      });
    }
  });
}

}  // namespace stepladder::layers
