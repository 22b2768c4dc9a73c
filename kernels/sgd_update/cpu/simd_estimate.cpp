// simd waits for the divider: a square root and a division of 16 floats take 22 cycles on Sapphire
// Rapids, and no fewer per weight than with 4 lanes. The multipliers are as wide as the vectors and
// work beside it. So the root starts from an estimate of 12 or 14 bits, and a Newton step doubles
// its bits; the divider has the division alone, 10 cycles. sgd and momentum have no root.
//
// Expected: where the arrays are in cache, 1.1 to 2 with AVX-512 and 1 to 1.5 with AVX2; nothing
// where simd is at the rate of the memory already; 0.6 to 0.8 with SSE4.2, where the divider needs
// 6 cycles and the step, without FMA, is 12 instructions. Source of the cycles: uops.info [46].
#include "kernels/sgd_update/cpu/estimates.hpp"
#include "kernels/sgd_update/cpu/update_range.hpp"

namespace stepladder::sgd_update {
namespace {

class EstimatePlan final : public Plan {
 public:
  EstimatePlan(const Problem& p, const Resources&) : p_(p) {
    if (const char* why_not = why_no_estimates(p)) throw Unsupported(why_not);
  }
  void run(const Operands& o) override {
    const Estimates constants(p_, o);
    with_optimizer(p_.optimizer,
                   [&](auto optimizer) { update_range<optimizer()>(constants, o, 0, p_.count); });
  }

 private:
  Problem p_;
};

constexpr VariantInfo info{
    .name = "simd_estimate",
    .technique = Technique::simd,
    .builds_on = "simd",
    .adds = "an estimate and a Newton step instead of the square root",
    .idea = Idea::algorithm,
    .isa = build_isa,
};

const Registration registration{info, make_plan<SgdUpdate, EstimatePlan>};

}  // namespace
}  // namespace stepladder::sgd_update
