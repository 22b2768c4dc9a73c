// One instruction, many weights: the rule on vectors of 4, 8 or 16. The roots and divisions of the
// adaptive optimizers gain by the full width; what is left is the memory that goes through.
#include "kernels/sgd_update/cpu/vectors.hpp"

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
    .isa = build_isa,
};

const Registration registration{info, plan_of<update_weights>};

}  // namespace
}  // namespace stepladder::sgd_update
