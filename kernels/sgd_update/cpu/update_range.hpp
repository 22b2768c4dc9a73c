// The update rules on vectors of weights. The tail uses the same vector arithmetic as the rest, so
// results do not depend on where ranges begin and end, or on the number of threads.
#pragma once

#include "kernels/common/cpu/simd.hpp"
#include "kernels/common/cpu/vector_loop.hpp"
#include "kernels/sgd_update/rules.hpp"

namespace stepladder::sgd_update::inline STEPLADDER_ISA {

// Updates the weights [begin, end).
template <Optimizer optimizer, class AnyConstants>
void update_range(const AnyConstants& constants, const Operands& operands, std::int64_t begin,
                  std::int64_t end) {
  // A store could change the originals, so they would be read again for every vector.
  const AnyConstants c = constants;
  const Operands o = operands;
  for_each_vector(begin, end, [&](std::int64_t, const auto& load, const auto& store) {
    Vector weights = load(o.weights), state1, state2;
    if constexpr (has_state1<optimizer>) state1 = load(o.state1);
    if constexpr (has_state2<optimizer>) state2 = load(o.state2);
    update<optimizer>(c, weights, load(o.gradient), state1, state2);
    store(o.weights, weights);
    if constexpr (has_state1<optimizer>) store(o.state1, state1);
    if constexpr (has_state2<optimizer>) store(o.state2, state2);
  });
}

}  // namespace stepladder::sgd_update::inline STEPLADDER_ISA
