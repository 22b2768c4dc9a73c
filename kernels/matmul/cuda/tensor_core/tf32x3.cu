// 3xTF32: fp32 accuracy from the tensor cores. Each operand is split into big + small, with 11
// significant bits each, and three of the four products are accumulated:
//
//     a b ≈ a_big b_big + a_big b_small + a_small b_big
//
// Three times the arithmetic of tf32_tensor_core at 7 times the rate of fp32: expected gain over
// warp_tile 1.5 to 2 (H. Ootomo and R. Yokota, "Recovering single precision accuracy from Tensor
// Cores while surpassing the FP32 theoretical peak performance", 2022).
//
// Error bound (derivation in the README): a product errs by at most 2⁻²¹, and the accumulation by
// 3 times the fp32 bound. The small products have their own accumulators; otherwise their
// truncation would make the error three times as large.
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
    .idea = Idea::algorithm,
    .place = Place::cuda,
    .epilogue = true,
    .bound_factor = 3,
    .operand_error = 0x1p-21,
};

const Registration registration{info, make_tensor_plan<Tile, 1>};

}  // namespace
}  // namespace stepladder::matmul
