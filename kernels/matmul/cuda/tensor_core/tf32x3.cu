// fp32 accuracy from the tensor cores. Every factor is cut in two, big + small, each with the 11
// significant bits of TF32, and of the four products the three that matter are added:
//
//     a b ≈ a_big b_big + a_big b_small + a_small b_big
//
// Three times the arithmetic of tf32_tensor_core, at 7 times the rate of fp32: expected gain over
// warp_tile 1.5 to 2 (H. Ootomo and R. Yokota, "Recovering single precision accuracy from Tensor
// Cores while surpassing the FP32 theoretical peak performance", 2022).
//
// The bound. big is a rounded to the nearest, so |a - big| <= 2⁻¹¹ |a|, a number of at most 12
// bits, of which TF32 keeps 11: what is lost is at most 2⁻²³ |a|. With the product of the small
// parts that is left out, 2⁻²² |a b|, a product errs by at most 2⁻²¹. The sums: a tensor core may
// cut each of the 8 products and the sum that it adds to at the last place of the largest, and cuts
// the result, where fp32 would round: 10 times 2⁻²³ for 8 products, 2.5 times the fp32 bound. The
// small products have sums of their own, or their cuts would come to three times that; their own
// cuts are 2⁻¹⁰ of it, and the last addition rounds once: 3 is enough.
#include "kernels/matmul/cuda/tensor_core/tensor_plan.hpp"
#include "kernels/matmul/cuda/tensor_core/tf32x3.hpp"

namespace stepladder::matmul {
namespace {

// Two sums for each element leave registers for 32 columns.
using Tile = TensorTile<Tf32x3, 128, 64, 32>;

constexpr VariantInfo info{
    .name = "tf32x3",
    .technique = Technique::cuda,
    .builds_on = "tf32_tensor_core",
    .adds = "each factor in two parts, three products: fp32 accuracy from the tensor cores",
    .place = Place::cuda,
    .epilogue = true,
    .bound_factor = 3,
    .operand_error = 0x1p-21,
};

const Registration registration{info, make_tensor_plan<Tile, 1>};

}  // namespace
}  // namespace stepladder::matmul
