// tf32x3 with wgmma. The register operand is split into big + small in registers, the shared
// operand when it is packed before the product, [2, extent, k]. That pass of 12 bytes per element
// takes 47 us of at best 834 us at 4096³. The small products have their own accumulators, so a tile
// is 128 x 128: a stage loads (128 + 2 · 128) · 32 floats for 3 · 2 · 128 · 128 · 32 FLOPs, 64 per
// byte.
//
// Three times the arithmetic of tf32_wgmma at 7.4 times the rate of fp32: expected gain over tf32x3
// 1.3 to 1.8. Error bound: see tf32x3.cu; the TMA does not round.
#include "kernels/common/cuda/wgmma_accumulators.hpp"
#include "kernels/matmul/cuda/wgmma/wgmma_plan.hpp"

namespace stepladder::matmul {
namespace {

constexpr VariantInfo info{
    .name = "tf32x3_wgmma",
    .technique = Technique::cuda,
    .builds_on = "tf32x3",
    .adds = "3xTF32 with wgmma and the TMA; one operand is split into big + small beforehand",
    .idea = Idea::tensor_cores,
    .place = Place::cuda,
    .epilogue = true,
    .bound_factor = 3,
    .operand_error = 0x1p-21,
};

const Registration registration{
    info, make_wgmma_plan<1, Tf32x3Accumulators<128>, Tf32x3Accumulators<64>>};

}  // namespace
}  // namespace stepladder::matmul
