// Local response normalization: vectors along the plane go down the channels, where their window
// moves. A work item is a few vectors of positions of one image.
#pragma once

#include "kernels/layers/layers.hpp"
#include "kernels/layers/cpu/simd_openmp/parallel_for.hpp"

namespace stepladder::layers::inline STEPLADDER_ISA {

// scale^−beta. The usual beta, 3/4, needs two roots and no logarithm.
inline Vector to_minus_beta(const Vector& scale, float beta) {
  if (beta == 0.75F) {
    const Vector root = xsimd::sqrt(scale);
    return Vector(1.0F) / (root * xsimd::sqrt(root));
  }
  return xsimd::exp(Vector(-beta) * xsimd::log(scale));
}

// Positions that go down the channels together: some whole cache lines of each plane, or memory would
// be read a line here and a line there.
inline constexpr std::int64_t positions_together = 4 * static_cast<std::int64_t>(Vector::size);

// Calls body(first, count, part) for every image and `count` positions of it; `first` is the place
// of channel 0.
template <class Body>
void over_positions(const Problem& p, int threads, const Body& body) {
  constexpr std::int64_t together = positions_together;
  const std::int64_t blocks = (p.spatial + together - 1) / together;
  in_stretches(p.batch * blocks, p.channels * together, threads,
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
  over_positions(p, threads, [&](std::int64_t first, std::int64_t count, int) {
    for (std::int64_t c = 0; c < p.channels; ++c) {
      const std::int64_t at = first + c * p.spatial;
      over_vectors(count, [&](std::int64_t, const auto& load, const auto& store) {
        const Vector scale = scale_of(
            p, Window(p, c), [&](std::int64_t j) { return load(o.x + first + j * p.spatial); });
        store(o.y + at, load(o.x + at) * to_minus_beta(scale, p.beta));
      });
    }
  });
}

// workspace: [threads][2][channels][positions_together], dy · scale^−beta and dy · y / scale, which each
// window shares with its neighbours.
inline void normalization_backward(const Problem& p, const Operands& o, int threads, float* workspace) {
  constexpr std::int64_t together = positions_together;
  const Vector factor(2 * p.alpha * p.beta / static_cast<float>(p.size));
  over_positions(p, threads, [&](std::int64_t first, std::int64_t count, int part) {
    float* direct = workspace + 2 * part * p.channels * together;
    float* quotient = direct + p.channels * together;
    for (std::int64_t c = 0; c < p.channels; ++c) {
      const std::int64_t at = first + c * p.spatial;
      over_vectors(count, [&](std::int64_t i, const auto& load, const auto&) {
        const Vector scale = scale_of(
            p, Window(p, c), [&](std::int64_t j) { return load(o.x + first + j * p.spatial); });
        const Vector scaled = load(o.dy + at) * to_minus_beta(scale, p.beta);
        scaled.store_aligned(direct + c * together + i);
        (scaled * load(o.x + at) / scale).store_aligned(quotient + c * together + i);
      });
    }
    for (std::int64_t c = 0; c < p.channels; ++c) {
      const std::int64_t at = first + c * p.spatial;
      const Window window(p, c);
      over_vectors(count, [&](std::int64_t i, const auto& load, const auto& store) {
        Vector sum(0.0F);
        for (std::int64_t j = window.first; j <= window.last; ++j)
          sum += Vector::load_aligned(quotient + j * together + i);
        store(o.dx + at,
              Vector::load_aligned(direct + c * together + i) - factor * load(o.x + at) * sum);
      });
    }
  });
}

}  // namespace stepladder::layers::inline STEPLADDER_ISA
