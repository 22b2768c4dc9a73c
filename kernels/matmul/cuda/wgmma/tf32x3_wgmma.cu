// tf32x3 with wgmma: the first factor is cut in two, big + small, in registers, the second when it
// is laid out anew before the product, [2, extent, depth]. That pass of 12 bytes an element takes 47
// microseconds of at best 834 at 4096³. The small products have sums of their own, so that the tile
// is 128 x 128: for each stage (128 + 2 · 128) · 32 floats and 3 · 2 · 128 · 128 · 32 FLOPs, 64 a byte.
//
// Three times the arithmetic of tf32_wgmma at 7.4 times the rate of fp32: expected gain over
// tf32x3 1.3 to 1.8. The bound: see tf32x3.cu; the TMA leaves the numbers as they are.
#include "kernels/common/cuda/wgmma_accumulators.hpp"
#include "kernels/matmul/cuda/wgmma/wgmma_plan.hpp"

namespace stepladder::matmul {
namespace {

using Sums = Tf32x3Sums<128>;  // two for each element: no registers are left for more columns

constexpr VariantInfo info{
    .name = "tf32x3_wgmma",
    .technique = Technique::cuda,
    .builds_on = "tf32x3",
    .adds = "wgmma, fed by the TMA, with the second factor cut in two beforehand",
    .place = Place::cuda,
    .epilogue = true,
    .bound_factor = 3,
    .operand_error = 0x1p-21,
};

const Registration registration{info, make_wgmma_plan<Sums, Sums>};

}  // namespace
}  // namespace stepladder::matmul
