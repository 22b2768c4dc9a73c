// The unfolded matrix of im2col, multiplied on vectors of 4, 8 or 16 pixels (of weights, for
// backward_weights). Each product loads and stores a vector of the result, so L1 limits the speed
// and not the arithmetic; the register tile lifts that limit.
#include "kernels/convolution/cpu/unfolded/unfolded_product.hpp"

namespace stepladder::convolution {
namespace {

constexpr VariantInfo info{
    .name = "simd",
    .technique = Technique::simd,
    .builds_on = "im2col",
    .adds = "vectors of 4, 8 or 16 pixels of the unfolded matrix",
    .idea = Idea::vectors,
    .isa = build_isa,
};

const Registration registration{
    info, make_plan<Convolution, UnfoldedProduct<Product<true, false, false>>>};

}  // namespace
}  // namespace stepladder::convolution
