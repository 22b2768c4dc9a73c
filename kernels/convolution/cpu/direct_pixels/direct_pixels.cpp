// The direct convolution with pixels on lanes: an implicit matrix product, in which the source of a
// tap is a vector of neighbouring pixels at a fixed offset in the padded rows (correlation.hpp).
//
// Expected over direct_tile, whose lanes are channels: up to 16x with one channel of the target,
// half of that in practice, since each multiply-add then loads its pixels; nothing with whole
// vectors of channels; a loss where the padding between short rows fills the lanes.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/convolution/cpu/direct_pixels/correlation.hpp"
#include "kernels/convolution/cpu/openmp_plan.hpp"

namespace stepladder::convolution {
namespace {

std::unique_ptr<Plan> plan(const Problem& problem, const Resources& resources) {
  if (problem.direction == Direction::backward_weights)
    throw Unsupported("built for forward and backward_data");
  return std::make_unique<OpenMpPlan>(
      std::make_unique<DirectPixelsCorrelation>(problem, resources.threads), resources.threads);
}

constexpr VariantInfo info{
    .name = "direct_pixels",
    .technique = Technique::openmp,
    .builds_on = "direct_tile",
    .adds = "pixels on lanes, read at the offset of each tap in padded rows",
    .idea = Idea::vectors,
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::convolution
