// The unfolded matrix of im2col, multiplied by tiles of the result that stay in registers for all
// taps. Rows of the unfolded matrix are far apart: packing brings them together (`packed`).
#include "kernels/convolution/cpu/unfolded/unfolded_product.hpp"

namespace stepladder::convolution {
namespace {

constexpr VariantInfo info{
    .name = "tiled",
    .technique = Technique::simd,
    .builds_on = "simd",
    .adds = "a tile of the result in registers for all taps",
    .idea = Idea::register_tile,
    .isa = build_isa,
};

const Registration registration{
    info, make_plan<Convolution, UnfoldedProduct<Product<true, true, false>>>};

}  // namespace
}  // namespace stepladder::convolution
