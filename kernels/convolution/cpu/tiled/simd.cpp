// The product of im2col on vectors, with a block of the result in registers, and without the
// unfolded matrix: only the few hundred columns at work exist, unfolded straight into the panels
// that the register tile reads, in the second-level cache. See correlation.hpp and
// weight_gradient.hpp.
//
// Expected: near the vector unit's peak, less what unfolding costs, one vector copied for every
// out_channels / groups vector FMAs.
#include "kernels/common/cpu/simd.hpp"

#include "kernels/convolution/cpu/tiled/tiled.hpp"

namespace stepladder::convolution {
namespace {

class Simd final : public Plan {
 public:
  Simd(const Problem& problem, const Resources&) : steps_(make_steps(problem, 1)) {}
  void run(const Operands& operands) override {
    for (int step = 0; step < Steps::count; ++step) steps_->step(step, 0, operands);
  }

 private:
  std::unique_ptr<Steps> steps_;
};

constexpr VariantInfo info{
    .name = "simd",
    .technique = Technique::simd,
    .builds_on = "im2col",
    .adds =
        "unfolding straight into packed panels, and a product on vectors with its sums in "
        "registers",
    .isa = build_isa,
};

const Registration registration{info, make_plan<Convolution, Simd>};

}  // namespace
}  // namespace stepladder::convolution
