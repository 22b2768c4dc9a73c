// The direct convolution again, now on a tile of sums in registers: no unfolded copy of the image is
// made, and nothing is multiplied by the zeros of the padding. Output channels are the lanes, so a
// pixel of the input is one broadcast; the plain layout can stay. See direct_correlation.hpp and
// direct_weight_gradient.hpp.
//
// Expected: what unfolding and padding cost openmp, 1.2x to 1.4x for 5 x 5 kernels on small images
// (on 14 x 14, one product in six is with padding). Few output channels leave lanes empty.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/convolution/cpu/direct_tile/correlation.hpp"
#include "kernels/convolution/cpu/direct_tile/backward_weights.hpp"
#include "kernels/convolution/cpu/openmp_plan.hpp"

namespace stepladder::convolution {
namespace {

std::unique_ptr<Steps> steps_of(const Problem& problem, int threads) {
  if (problem.direction == Direction::backward_weights)
    return std::make_unique<DirectWeightGradient>(problem, threads);
  return std::make_unique<DirectCorrelation>(problem, threads);
}

std::unique_ptr<Plan> plan(const Problem& problem, const Resources& resources) {
  return std::make_unique<OpenMpPlan>(steps_of(problem, resources.threads), resources.threads);
}

constexpr VariantInfo info{
    .name = "direct_tile",
    .technique = Technique::openmp,
    .builds_on = "openmp",
    .adds =
        "nothing unfolded, nothing multiplied with padding: channels on lanes, pixels broadcast",
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::convolution
