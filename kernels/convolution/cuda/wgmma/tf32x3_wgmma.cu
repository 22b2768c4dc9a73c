// tf32_wgmma with fp32 accuracy: 3xTF32. Each operand is split into big + small, with the 11
// significant bits of TF32 each, and three of the four products are added (H. Ootomo and R. Yokota,
// "Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical
// peak performance", 2022):
//
//     a b ≈ a_big b_big + a_big b_small + a_small b_big
//
// A is split in registers; B is packed as two matrices, big and small, which the TMA loads. The
// small products have accumulators of their own, so registers suffice for at most 128 columns.
//
// Expected: 0.5 to 0.8 of the speed of tf32_wgmma where L2 limits it (three times the products, 1.5
// times the bytes), a third elsewhere; 1.2 to 2.5 times implicit_gemm, because a third of the TF32
// peak is 2.5 times the fp32 peak. The README derives the error bound.
#include "kernels/common/cuda/wgmma_accumulators.hpp"
#include "kernels/convolution/cuda/wgmma/plan.hpp"

namespace stepladder::convolution {
namespace {

constexpr VariantInfo info{
    .name = "tf32x3_wgmma",
    .technique = Technique::cuda,
    .builds_on = "tf32_wgmma",
    .adds = "3xTF32: operands split into big + small, three products, fp32 accuracy",
    .idea = Idea::algorithm,
    .nhwc = true,
    .place = Place::cuda,
    .bound_factor = 4,
    .operand_error = 0x1p-21,
};

const Registration registration{info,
                                make_wgmma_plan<Tf32x3Accumulators<128>, Tf32x3Accumulators<64>>};

}  // namespace
}  // namespace stepladder::convolution
