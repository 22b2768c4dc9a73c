// Local response normalization: vectors along the plane go down the channels, where their window
// moves. A work item is a few vectors of positions of one image.
#pragma once

#include "kernels/layers/layers.hpp"
#include "kernels/layers/simd_openmp/stretches.hpp"

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

template <class V>
void normalization_forward(const Problem& p, const Operands& o, int threads) {
  const V k(p.k), factor(p.alpha / static_cast<float>(p.size));
  over_positions<V>(p, threads, [&](std::int64_t first, std::int64_t count, int) {
    for (std::int64_t c = 0; c < p.channels; ++c) {
      const std::int64_t at = first + c * p.spatial;
      const Window window(p, c);
      over_vectors<V>(count, [&](std::int64_t, const auto& load, const auto& store) {
        V sum(0.0F);
        for (std::int64_t i = window.first; i <= window.last; ++i) {
          const V x = load(o.x + first + i * p.spatial);
          sum = xsimd::fma(x, x, sum);
        }
        const V scale = xsimd::fma(factor, sum, k);
        store(o.scale + at, scale);
        store(o.y + at, load(o.x + at) * to_minus_beta(scale, p.beta));
      });
    }
  });
}

// quotients: [threads][channels][positions_together] of workspace for dy · y / scale, which each
// window shares with its neighbours.
template <class V>
void normalization_backward(const Problem& p, const Operands& o, int threads, float* quotients) {
  constexpr std::int64_t together = positions_together<V>;
  const V factor(2 * p.alpha * p.beta / static_cast<float>(p.size));
  over_positions<V>(p, threads, [&](std::int64_t first, std::int64_t count, int part) {
    float* quotient = quotients + part * p.channels * together;
    for (std::int64_t c = 0; c < p.channels; ++c) {
      const std::int64_t at = first + c * p.spatial;
      over_vectors<V>(count, [&](std::int64_t i, const auto& load, const auto&) {
        (load(o.dy + at) * load(o.y + at) / load(o.scale + at))
            .store_aligned(quotient + c * together + i);
      });
    }
    for (std::int64_t c = 0; c < p.channels; ++c) {
      const std::int64_t at = first + c * p.spatial;
      const Window window(p, c);
      over_vectors<V>(count, [&](std::int64_t i, const auto& load, const auto& store) {
        V sum(0.0F);
        for (std::int64_t j = window.first; j <= window.last; ++j)
          sum += V::load_aligned(quotient + j * together + i);
        const V direct = load(o.dy + at) * to_minus_beta(load(o.scale + at), p.beta);
        store(o.dx + at, direct - factor * load(o.x + at) * sum);
      });
    }
  });
}

}  // namespace stepladder::layers
