// Softmax with cross entropy: vectors along a row of logits, rows distributed over threads. The
// maximum of the row is subtracted, so that no exponential overflows.
#pragma once

#include <cmath>
#include <limits>

#include "kernels/common/cpu/sum_of.hpp"
#include "kernels/common/cpu/vector_loop.hpp"
#include "kernels/layers/cpu/simd/parallel_for.hpp"
#include "kernels/layers/layers.hpp"

namespace stepladder::layers::inline STEPLADDER_ISA {

inline float largest_lane(const Vector& v) {
  float all[Vector::size];
  v.store_unaligned(all);
  return *std::max_element(all, all + Vector::size);
}

inline void softmax_row(const float* x, float* y, float* dx, std::int64_t label, const Problem& p,
                        float* loss) {
  const std::int64_t channels = p.channels;
  // never the maximum, and its exponential is 0
  const Vector minus_infinity(-std::numeric_limits<float>::infinity());
  float lanes[Vector::size];
  for (std::size_t lane = 0; lane < Vector::size; ++lane) lanes[lane] = static_cast<float>(lane);
  const Vector lane = Vector::load_unaligned(lanes);
  // A partial load fills the tail with 0, which could be the maximum.
  const auto mask_tail = [&](const Vector& v, std::int64_t i) {
    const std::int64_t rest = channels - i;
    return rest >= static_cast<std::int64_t>(Vector::size)
               ? v
               : Vector(xsimd::select(lane < Vector(static_cast<float>(rest)), v, minus_infinity));
  };
  Vector largest_lanes = minus_infinity, sums(0.0F);
  for_each_vector(0, channels, [&](std::int64_t i, const auto& load, const auto&) {
    largest_lanes = xsimd::max(largest_lanes, mask_tail(load(x), i));
  });
  const float largest = largest_lane(largest_lanes);
  for_each_vector(0, channels, [&](std::int64_t i, const auto& load, const auto& store) {
    const Vector exponential = xsimd::exp(mask_tail(load(x), i) - Vector(largest));
    sums = sums + exponential;
    store(y, exponential);
  });
  const float sum = sum_of(sums);
  const auto batch = static_cast<float>(p.batch);
  for_each_vector(0, channels, [&](std::int64_t, const auto& load, const auto& store) {
    const Vector probability = load(y) / Vector(sum);
    store(y, probability);
    store(dx, probability / Vector(batch));
  });
  dx[label] = (y[label] - 1) / batch;
  *loss = std::log(sum) - (x[label] - largest);
}

inline void softmax(const Problem& p, const Operands& o, int threads) {
  parallel_for(p.batch, p.channels, threads, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t n = begin; n < end; ++n)
      softmax_row(o.x + n * p.channels, o.y + n * p.channels, o.dx + n * p.channels, o.labels[n], p,
                  o.loss + n);
  });
}

}  // namespace stepladder::layers::inline STEPLADDER_ISA
