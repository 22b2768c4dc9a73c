// The tensor cores at Hopper's own width. mma.sync makes every warp fetch both factors from shared
// memory into registers for 16 x 8 x 8 products; wgmma makes 64 x 128 x 8 of four warps, with the
// second factor read where it lies, while the warps go on. The TMA fetches whole boxes at the word of
// one thread, and blocks stay for tile after tile; cuda_wgmma_plan.hpp tells how all that is joined.
//
// Tiles are 128 x 256, or 128 x 128 where C is small. A stage of the wide ones brings (128 + 256) · 32
// floats for 2 · 128 · 256 · 32 FLOPs: 43 a byte. Expected gain over tf32_tensor_core: 1.3 to 1.8, if
// mma.sync reaches two thirds of the peak at most, which wgmma is made for (W. Luo and others compare
// the two in "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture", 2024). The plan of it
// is CUTLASS's: "Efficient GEMM in CUDA", warp specialization.
//
// The bound. The TMA is asked to round to TF32, which no manual promises, and wgmma drops the bits
// that TF32 has not: a factor changes by at most 2⁻¹⁰ of itself, a product by at most 2⁻⁹ + 2⁻²⁰. How
// the sums round: see tf32x3.cu.
#include "kernels/common/cuda/wgmma_accumulators.hpp"
#include "kernels/matmul/cuda/wgmma/wgmma_plan.hpp"

namespace stepladder::matmul {
namespace {

constexpr VariantInfo info{
    .name = "tf32_wgmma",
    .technique = Technique::cuda,
    .builds_on = "tf32_tensor_core",
    .adds = "wgmma: 64 x 128 x 8 products at once, fed by the TMA through a ring of stages",
    .precision = "tf32",
    .place = Place::cuda,
    .epilogue = true,
    .bound_factor = 3,
    .operand_error = 0x1p-9 + 0x1p-20,
};

const Registration registration{info, make_wgmma_plan<Tf32Sums<256>, Tf32Sums<128>>};

}  // namespace
}  // namespace stepladder::matmul
