// The update rules on vectors of 4, 8 or 16 weights. The square roots and divisions of the adaptive
// optimizers gain the full vector width; then memory bandwidth is the limit.
#include "kernels/sgd_update/cpu/update_range.hpp"

namespace stepladder::sgd_update {
namespace {

void update_weights(const Problem& p, const Operands& o) {
  const Constants<Vector> constants(p, o);
  with_optimizer(p.optimizer,
                 [&](auto optimizer) { update_range<optimizer()>(constants, o, 0, p.count); });
}

constexpr VariantInfo info{
    .name = "simd",
    .technique = Technique::simd,
    .builds_on = "serial",
    .adds = "vectors of 4, 8 or 16 weights at once",
    .idea = Idea::vectors,
    .isa = build_isa,
};

const Registration registration{info, plan_of<update_weights>};

}  // namespace
}  // namespace stepladder::sgd_update
