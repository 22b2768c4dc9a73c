// Hopper's own tensor-core instruction. mma.sync makes every warp load both operands from shared
// memory into registers for 16 x 8 x 8 products. wgmma makes 64 x 128 x 8 for four warps,
// asynchronously, and reads one operand directly from shared memory. The TMA copies whole boxes on
// behalf of one thread, and blocks are persistent (wgmma_plan.hpp).
//
// Tiles are 128 x 256, or 128 x 128 or 128 x 64 where C is small. A stage of the wide ones loads
// (128 + 256) · 32 floats for 2 · 128 · 256 · 32 FLOPs: 43 per byte. Expected gain over
// tf32_tensor_core: 1.3 to 1.8, if mma.sync reaches at most two thirds of the peak, for which wgmma
// is made (W. Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture", 2024,
// compares the two).
//
// Error bound: the TMA is asked to round to TF32, which no manual promises, and wgmma truncates to
// TF32. An operand changes by at most 2⁻¹⁰ of itself, a product by at most 2⁻⁹ + 2⁻²⁰. Rounding of
// the accumulators: see tf32x3.cu.
#include "kernels/common/cuda/wgmma_accumulators.hpp"
#include "kernels/matmul/cuda/wgmma/wgmma_plan.hpp"

namespace stepladder::matmul {
namespace {

constexpr VariantInfo info{
    .name = "tf32_wgmma",
    .technique = Technique::cuda,
    .builds_on = "tf32_tensor_core",
    .adds = "wgmma: 64 x 128 x 8 products at once, fed by the TMA in a multi-stage pipeline",
    .idea = Idea::tensor_cores,
    .precision = Precision::tf32,
    .place = Place::cuda,
    .epilogue = true,
    .bound_factor = 3,
    .operand_error = 0x1p-9 + 0x1p-20,
};

const Registration registration{
    info, make_wgmma_plan<1, Tf32Accumulators<256>, Tf32Accumulators<128>, Tf32Accumulators<64>>};

}  // namespace
}  // namespace stepladder::matmul
