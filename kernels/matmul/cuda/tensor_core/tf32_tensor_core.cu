// Tensor cores instead of multiply-add units: one instruction of a warp does 1024 products of
// operands rounded to TF32 (8-bit exponent, 10-bit mantissa) and accumulates them in fp32. An H200
// has 495 TFLOP/s of TF32 and 67 of fp32 (NVIDIA, H200 datasheet, without sparsity); mma.sync,
// which is older than Hopper, does not reach all of them. Four stages of copies are in flight, and
// the layout in shared memory lets fragments be loaded without bank conflicts. Expected gain over
// warp_tile: 4 to 5, if mma.sync reaches two thirds of the peak.
//
// Error bound: rounding to a 10-bit mantissa changes an operand by at most 2⁻¹¹ of itself, so a
// product by at most 2⁻¹⁰ + 2⁻²². Rounding of the accumulators: see tf32x3.cu.
#include "kernels/matmul/cuda/tensor_core/tensor_plan.hpp"
#include "kernels/matmul/cuda/tensor_core/tf32.hpp"

namespace stepladder::matmul {
namespace {

using Tile = TensorTile<Tf32, 128, 64, 64>;  // two blocks per multiprocessor

constexpr VariantInfo info{
    .name = "tf32_tensor_core",
    .technique = Technique::cuda,
    .builds_on = "warp_tile",
    .adds = "tensor cores: 16 x 8 x 8 products of TF32 operands per instruction (mma.sync)",
    .idea = Idea::tensor_cores,
    .precision = Precision::tf32,
    .place = Place::cuda,
    .epilogue = true,
    .bound_factor = 3,
    .operand_error = 0x1p-10 + 0x1p-22,
};

const Registration registration{info, make_tensor_plan<Tile, 2>};

}  // namespace
}  // namespace stepladder::matmul
