// 3xTF32: fp32 accuracy from the tensor cores. Each operand is split into big + small, with 11
// significant bits each, and three of the four products are accumulated:
//
//     a b ≈ a_big b_big + a_big b_small + a_small b_big
//
// Three times the arithmetic of tf32_tensor_core at 7 times the rate of fp32: expected gain over
// warp_tile 1.5 to 2 (H. Ootomo and R. Yokota, "Recovering single precision accuracy from Tensor
// Cores while surpassing the FP32 theoretical peak performance", 2022).
//
// Error bound of a product: big is a rounded to nearest, so |a - big| <= 2⁻¹¹ |a|. The rest has at
// most 12 bits, of which TF32 keeps 11, so at most 2⁻²³ |a| is lost. With the omitted product of
// the small parts, 2⁻²² |a b|, a product errs by at most 2⁻²¹.
//
// Error bound of the accumulation: for 8 products a tensor core may truncate each product and the
// accumulator at the last place of the largest of them, and truncates the result: 10 times 2⁻²³,
// 2.5 times the fp32 bound. The small products have their own accumulators; otherwise their
// truncation would raise that to three times as much. Their own error is 2⁻¹⁰ of it, and the last
// addition rounds once: a factor of 3 suffices.
#include "kernels/matmul/cuda/tensor_core/tensor_plan.hpp"
#include "kernels/matmul/cuda/tensor_core/tf32x3.hpp"

namespace stepladder::matmul {
namespace {

// Two accumulators per element leave registers for 32 columns.
using Tile = TensorTile<Tf32x3, 128, 64, 32>;

constexpr VariantInfo info{
    .name = "tf32x3",
    .technique = Technique::cuda,
    .builds_on = "tf32_tensor_core",
    .adds = "3xTF32: operands split into big + small, three products, fp32 accuracy",
    .place = Place::cuda,
    .epilogue = true,
    .bound_factor = 3,
    .operand_error = 0x1p-21,
};

const Registration registration{info, make_tensor_plan<Tile, 1>};

}  // namespace
}  // namespace stepladder::matmul
