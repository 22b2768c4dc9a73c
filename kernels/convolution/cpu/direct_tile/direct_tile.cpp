// The direct convolution on a register tile: the image is not unfolded, and nothing is multiplied
// by the zeros of the padding. Lanes are output channels, so an input pixel is one broadcast and
// the plain layout needs no change (correlation.hpp, backward_weights.hpp).
//
// Expected over openmp: what unfolding and padding cost, 1.2x to 1.4x for 5 x 5 kernels on small
// images (on 14 x 14, one product in six is with padding). With few output channels lanes are idle.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/convolution/cpu/direct_tile/backward_weights.hpp"
#include "kernels/convolution/cpu/direct_tile/correlation.hpp"
#include "kernels/convolution/cpu/openmp_plan.hpp"

namespace stepladder::convolution {
namespace {

std::unique_ptr<ThreadedConvolution> make_convolution(const Problem& problem, int threads) {
  if (problem.direction == Direction::backward_weights)
    return std::make_unique<DirectTileBackwardWeights>(problem, threads);
  return std::make_unique<DirectTileCorrelation>(problem, threads);
}

std::unique_ptr<Plan> plan(const Problem& problem, const Resources& resources) {
  return std::make_unique<OpenMpPlan>(make_convolution(problem, resources.threads),
                                      resources.threads);
}

constexpr VariantInfo info{
    .name = "direct_tile",
    .technique = Technique::openmp,
    .builds_on = "openmp",
    .adds = "no unfolding, no products with padding: channels on lanes, pixels broadcast",
    .idea = Idea::algorithm,
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::convolution
