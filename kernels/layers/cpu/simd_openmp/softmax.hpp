// Softmax with cross entropy: a row of logits on vectors, rows on threads. The row's maximum is
// subtracted first, so that no exponential overflows.
#pragma once

#include <cmath>
#include <limits>

#include "kernels/layers/layers.hpp"
#include "kernels/layers/cpu/simd_openmp/parallel_for.hpp"

namespace stepladder::layers {

template <class V>
inline float largest_lane(const V& v) {
  float all[V::size];
  v.store_unaligned(all);
  return *std::max_element(all, all + V::size);
}

template <class V>
void softmax_row(const float* x, float* y, float* dx, std::int64_t label, const Problem& p,
                 float* loss) {
  const std::int64_t channels = p.channels;
  const V nothing(
      -std::numeric_limits<float>::infinity());  // never the maximum, and e^nothing is 0
  float counted[V::size];
  for (std::size_t lane = 0; lane < V::size; ++lane) counted[lane] = static_cast<float>(lane);
  const V lane = V::load_unaligned(counted);
  // What a partial load leaves of the last vector is 0, which could be the maximum.
  const auto fill_up = [&](const V& v, std::int64_t i) {
    const std::int64_t inside = channels - i;
    return inside >= static_cast<std::int64_t>(V::size)
               ? v
               : V(xsimd::select(lane < V(static_cast<float>(inside)), v, nothing));
  };
  V largest_lanes = nothing, sums(0.0F);
  over_vectors<V>(channels, [&](std::int64_t i, const auto& load, const auto&) {
    largest_lanes = xsimd::max(largest_lanes, fill_up(load(x), i));
  });
  const float largest = largest_lane(largest_lanes);
  over_vectors<V>(channels, [&](std::int64_t i, const auto& load, const auto& store) {
    const V exponential = xsimd::exp(fill_up(load(x), i) - V(largest));
    sums = sums + exponential;
    store(y, exponential);
  });
  const float sum = xsimd::hadd(sums);
  const auto batch = static_cast<float>(p.batch);
  over_vectors<V>(channels, [&](std::int64_t, const auto& load, const auto& store) {
    const V probability = load(y) / V(sum);
    store(y, probability);
    store(dx, probability / V(batch));
  });
  dx[label] = (y[label] - 1) / batch;
  *loss = std::log(sum) - (x[label] - largest);
}

template <class V>
void softmax(const Problem& p, const Operands& o, int threads) {
  in_stretches<V>(p.batch, p.channels, threads, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t n = begin; n < end; ++n)
      softmax_row<V>(o.x + n * p.channels, o.y + n * p.channels, o.dx + n * p.channels, o.labels[n],
                     p, o.loss + n);
  });
}

}  // namespace stepladder::layers
