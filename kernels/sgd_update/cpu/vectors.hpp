// What simd and openmp share: the rule of an optimizer on whole vectors of weights. The last weights,
// too few for a vector, go through a partly filled one, so that every weight sees the same arithmetic
// wherever a range begins and ends: results do not depend on the number of threads.
#pragma once

#include "kernels/common/cpu/partial_vector.hpp"
#include "kernels/common/cpu/simd.hpp"
#include "kernels/sgd_update/rules.hpp"

namespace stepladder::sgd_update::inline STEPLADDER_ISA {

// Updates the vector of weights at i. load(p) gives a vector, store(p, v) writes one: whole or in part.
template <Optimizer optimizer, class Load, class Store>
inline void update_vector(const Constants<Vector>& constants, const Operands& o, std::int64_t i,
                          const Load& load, const Store& store) {
  Vector weights = load(o.weights + i), state1, state2;
  if constexpr (keeps_state1<optimizer>) state1 = load(o.state1 + i);
  if constexpr (keeps_state2<optimizer>) state2 = load(o.state2 + i);
  update<optimizer>(constants, weights, load(o.gradient + i), state1, state2);
  store(o.weights + i, weights);
  if constexpr (keeps_state1<optimizer>) store(o.state1 + i, state1);
  if constexpr (keeps_state2<optimizer>) store(o.state2 + i, state2);
}

// Updates the weights of [begin, end).
template <Optimizer optimizer>
void update_range(const Constants<Vector>& constants, const Operands& o,
                  std::int64_t begin, std::int64_t end) {
  constexpr auto lanes = static_cast<std::int64_t>(Vector::size);
  std::int64_t i = begin;
  for (; i + lanes <= end; i += lanes)
    update_vector<optimizer>(
        constants, o, i, [](const float* p) { return Vector::load_unaligned(p); },
        [](float* p, const Vector& v) { v.store_unaligned(p); });
  const std::int64_t rest = end - i;
  if (rest > 0)
    update_vector<optimizer>(
        constants, o, i, [=](const float* p) { return load_partial(p, rest); },
        [=](float* p, const Vector& v) { store_partial(p, v, rest); });
}

}  // namespace stepladder::sgd_update::inline STEPLADDER_ISA
