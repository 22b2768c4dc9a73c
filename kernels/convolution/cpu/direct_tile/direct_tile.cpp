// The direct convolution on a register tile: the image is not unfolded, and products with padding
// are skipped, except where skipping them would take longer. Lanes are output channels, so an
// input pixel is one broadcast and the plain layout needs no change (correlation.hpp,
// backward_weights.hpp).
//
// Expected over openmp: what unfolding and padding cost, 1.2x to 1.4x for 5 x 5 kernels on small
// images (on 14 x 14, one product in six is with padding). With few output channels lanes are idle.
#include "kernels/convolution/cpu/direct_tile/plan.hpp"

namespace stepladder::convolution {
namespace {

constexpr VariantInfo info{
    .name = "direct_tile",
    .technique = Technique::openmp,
    .builds_on = "openmp",
    .adds = "no unfolding, few products with padding: channels on lanes, pixels broadcast",
    .idea = Idea::algorithm,
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, direct_tile_plan<Floats>};

}  // namespace
}  // namespace stepladder::convolution
