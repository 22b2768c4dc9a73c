// The definition: one weight after the other. The weights are independent of each other, and there
// is so little arithmetic that memory bandwidth is the limit.
#include "kernels/sgd_update/rules.hpp"

namespace stepladder::sgd_update {
namespace {

template <Optimizer optimizer>
void update_all(const Problem& p, const Operands& o) {
  const Constants<float> constants(p, o);
  float none = 0;  // in place of a state that the optimizer does not have
#pragma omp simd
  for (std::int64_t i = 0; i < p.count; ++i) {
    float& state1 = has_state1<optimizer> ? o.state1[i] : none;
    float& state2 = has_state2<optimizer> ? o.state2[i] : none;
    update<optimizer>(constants, o.weights[i], o.gradient[i], state1, state2);
  }
}

void update_weights(const Problem& p, const Operands& o) {
  with_optimizer(p.optimizer, [&](auto optimizer) { update_all<optimizer()>(p, o); });
}

constexpr VariantInfo info{
    .name = "serial",
    .technique = Technique::serial,
    .adds = "the definition: one weight after the other",
};

const Registration registration{info, plan_of<update_weights>};

}  // namespace
}  // namespace stepladder::sgd_update
