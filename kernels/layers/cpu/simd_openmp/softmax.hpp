// Softmax with cross entropy: a row of logits on vectors, rows on threads. The row's maximum is
// subtracted first, so that no exponential overflows.
#pragma once

#include <cmath>
#include <limits>

#include "kernels/layers/layers.hpp"
#include "kernels/layers/cpu/simd_openmp/parallel_for.hpp"

namespace stepladder::layers::inline STEPLADDER_ISA {

inline float largest_lane(const Vector& v) {
  float all[Vector::size];
  v.store_unaligned(all);
  return *std::max_element(all, all + Vector::size);
}

inline void softmax_row(const float* x, float* y, float* dx, std::int64_t label, const Problem& p,
                 float* loss) {
  const std::int64_t channels = p.channels;
  const Vector nothing(
      -std::numeric_limits<float>::infinity());  // never the maximum, and e^nothing is 0
  float counted[Vector::size];
  for (std::size_t lane = 0; lane < Vector::size; ++lane) counted[lane] = static_cast<float>(lane);
  const Vector lane = Vector::load_unaligned(counted);
  // What a partial load leaves of the last vector is 0, which could be the maximum.
  const auto fill_up = [&](const Vector& v, std::int64_t i) {
    const std::int64_t inside = channels - i;
    return inside >= static_cast<std::int64_t>(Vector::size)
               ? v
               : Vector(xsimd::select(lane < Vector(static_cast<float>(inside)), v, nothing));
  };
  Vector largest_lanes = nothing, sums(0.0F);
  over_vectors(channels, [&](std::int64_t i, const auto& load, const auto&) {
    largest_lanes = xsimd::max(largest_lanes, fill_up(load(x), i));
  });
  const float largest = largest_lane(largest_lanes);
  over_vectors(channels, [&](std::int64_t i, const auto& load, const auto& store) {
    const Vector exponential = xsimd::exp(fill_up(load(x), i) - Vector(largest));
    sums = sums + exponential;
    store(y, exponential);
  });
  const float sum = xsimd::hadd(sums);
  const auto batch = static_cast<float>(p.batch);
  over_vectors(channels, [&](std::int64_t, const auto& load, const auto& store) {
    const Vector probability = load(y) / Vector(sum);
    store(y, probability);
    store(dx, probability / Vector(batch));
  });
  dx[label] = (y[label] - 1) / batch;
  *loss = std::log(sum) - (x[label] - largest);
}

inline void softmax(const Problem& p, const Operands& o, int threads) {
  in_stretches(p.batch, p.channels, threads, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t n = begin; n < end; ++n)
      softmax_row(o.x + n * p.channels, o.y + n * p.channels, o.dx + n * p.channels, o.labels[n],
                     p, o.loss + n);
  });
}

}  // namespace stepladder::layers::inline STEPLADDER_ISA
