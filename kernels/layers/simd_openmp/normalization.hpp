// Local response normalization: vectors along the plane; each goes down the channels, where its window
// moves. A work item is one vector of positions of one image.
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

// Calls body(n, s, count, part) for every image n and vector of `count` positions from s on.
template <class V, class Body>
void over_positions(const Problem& p, int threads, const Body& body) {
  constexpr auto lanes = static_cast<std::int64_t>(V::size);
  const std::int64_t blocks = (p.spatial + lanes - 1) / lanes;
  in_stretches<V>(p.batch * blocks, p.channels * lanes, threads,
                  [&](std::int64_t begin, std::int64_t end, int part) {
                    for (std::int64_t item = begin; item < end; ++item) {
                      const std::int64_t s = item % blocks * lanes;
                      body(item / blocks, s, std::min(lanes, p.spatial - s), part);
                    }
                  });
}

template <class V>
void normalization_forward(const Problem& p, const Operands& o, int threads) {
  const V k(p.k), factor(p.alpha / static_cast<float>(p.size));
  over_positions<V>(p, threads, [&](std::int64_t n, std::int64_t s, std::int64_t count, int) {
    const std::int64_t image = n * p.channels * p.spatial + s;
    over_vectors<V>(count, [&](std::int64_t, const auto& load, const auto& store) {
      for (std::int64_t c = 0; c < p.channels; ++c) {
        const std::int64_t first = std::max<std::int64_t>(0, c - p.size / 2);
        const std::int64_t last = std::min(p.channels - 1, c + p.size / 2);
        V sum(0.0F);
        for (std::int64_t window = first; window <= last; ++window) {
          const V x = load(o.x + image + window * p.spatial);
          sum = xsimd::fma(x, x, sum);
        }
        const std::int64_t at = image + c * p.spatial;
        const V scale = xsimd::fma(factor, sum, k);
        store(o.scale + at, scale);
        store(o.y + at, load(o.x + at) * to_minus_beta(scale, p.beta));
      }
    });
  });
}

// quotients: [threads][channels][lanes] of workspace for dy · y / scale, which each window shares with
// its neighbours.
template <class V>
void normalization_backward(const Problem& p, const Operands& o, int threads, float* quotients) {
  constexpr auto lanes = static_cast<std::int64_t>(V::size);
  const V factor(2 * p.alpha * p.beta / static_cast<float>(p.size));
  over_positions<V>(p, threads, [&](std::int64_t n, std::int64_t s, std::int64_t count, int part) {
    const std::int64_t image = n * p.channels * p.spatial + s;
    float* quotient = quotients + part * p.channels * lanes;
    over_vectors<V>(count, [&](std::int64_t, const auto& load, const auto& store) {
      for (std::int64_t c = 0; c < p.channels; ++c) {
        const std::int64_t at = image + c * p.spatial;
        (load(o.dy + at) * load(o.y + at) / load(o.scale + at)).store_aligned(quotient + c * lanes);
      }
      for (std::int64_t c = 0; c < p.channels; ++c) {
        const std::int64_t first = std::max<std::int64_t>(0, c - p.size / 2);
        const std::int64_t last = std::min(p.channels - 1, c + p.size / 2);
        V sum(0.0F);
        for (std::int64_t window = first; window <= last; ++window)
          sum = sum + V::load_aligned(quotient + window * lanes);
        const std::int64_t at = image + c * p.spatial;
        const V direct = load(o.dy + at) * to_minus_beta(load(o.scale + at), p.beta);
        store(o.dx + at, direct - factor * load(o.x + at) * sum);
      }
    });
  });
}

}  // namespace stepladder::layers
