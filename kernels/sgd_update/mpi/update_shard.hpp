// What the updates over MPI share: the gradient's all-reduce as a problem, and the update of a
// shard.
#pragma once

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/common/links.hpp"
#include "kernels/sgd_update/cpu/update_range.hpp"

namespace stepladder::sgd_update::inline STEPLADDER_ISA {

inline all_reduce::Problem mean_of_gradients(const Problem& p) {
  return {.operation = all_reduce::Operation::mean, .count = p.count, .ranks = p.ranks};
}

// Updates the weights and the state of [first, first + count) alone. mean: [count], the mean
// gradient of these weights.
inline void update_shard(const Problem& p, const Operands& o, const float* mean, std::int64_t first,
                         std::int64_t count) {
  Operands shard = o;
  shard.weights += first;
  shard.gradient = mean;
  if (states(p.optimizer) >= 1) shard.state1 += first;
  if (states(p.optimizer) >= 2) shard.state2 += first;
  const Constants<Vector> constants(p, shard);
  with_optimizer(p.optimizer,
                 [&](auto optimizer) { update_range<optimizer()>(constants, shard, 0, count); });
}

// The time of updating weights of so many bytes by sgd, which reads two arrays and writes one, as
// an addition does. The cost model knows no optimizer: one state makes it 5/3 of this, two 7/3.
inline double update_cost(const CommunicationCost& c, double bytes) { return c.l.add(bytes); }

}  // namespace stepladder::sgd_update::inline STEPLADDER_ISA
