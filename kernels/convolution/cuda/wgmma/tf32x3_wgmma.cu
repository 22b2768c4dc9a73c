// tf32_wgmma with fp32's accuracy: every factor is cut in two, big + small, each with the 11 significant bits
// of TF32, and of the four products the three that matter are added (H. Ootomo and R. Yokota, "Recovering single
// precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak performance", 2022):
//
//     a b ≈ a_big b_big + a_big b_small + a_small b_big
//
// What is gathered is cut in registers; filters and dy are laid out anew as two matrices, so that the TMA
// brings both parts. The small products have sums of their own, which leaves registers for 128 columns.
//
// Three times the arithmetic of tf32_wgmma for half as many bytes more, (128 + 2 · 128) · 32 floats a step:
// expected 0.5 to 0.8 of its speed where the second-level cache binds that, a third where nothing does, and
// 1.2 to 2.5 times implicit_gemm, since a third of TF32's peak is 2.5 times that of fp32.
//
// The bound. Cutting loses at most 2⁻²³ of a factor, leaving out the product of the small parts 2⁻²² of the
// product: 2⁻²¹ together. The sums of the big products: see tf32_wgmma.cu; those of the small ones add 2⁻¹⁰ of
// that, and the last addition rounds once.
#include "kernels/common/cuda/wgmma_accumulators.hpp"
#include "kernels/convolution/cuda/wgmma/plan.hpp"

namespace stepladder::convolution {
namespace {

constexpr VariantInfo info{
    .name = "tf32x3_wgmma",
    .technique = Technique::cuda,
    .builds_on = "tf32_wgmma",
    .adds = "each factor in two parts, three products: fp32 accuracy from the tensor cores",
    .layouts = "nhwc",
    .place = Place::cuda,
    .bound_factor = 4,
    .operand_error = 0x1p-21,
};

const Registration registration{info, make_wgmma_plan<Tf32x3Sums<128>, Tf32x3Sums<64>>};

}  // namespace
}  // namespace stepladder::convolution
