// The convolution on Hopper's tensor cores. tf32_implicit_gemm spends its instructions on the
// im2col operand: one element at a time is loaded, rounded, stored, and read again by every warp.
// Here one warpgroup only copies: cp.async moves 16 bytes, four channels, to shared memory without
// registers. Two others multiply with wgmma, 64 x 128 x 8 per instruction. See gemm.hpp.
//
//   forward           y  [pixels, out channels] = x [pixels, CRS]  · w [out channels, CRS]ᵀ
//   backward_data     dx [pixels, in channels]  = dy [pixels, CRS] · rotated w [in channels, CRS]ᵀ,
//                     once per pair of remainders of a pixel's row and column modulo the stride
//   backward_weights  dw [CRS, out channels]    = x [pixels, CRS]ᵀ · dy [out channels, pixels]ᵀ
//
// Few tiles use split-K. The README describes layouts, repacking and the error bound.
//
// Expected over tf32_implicit_gemm: 1.5 to 2.5 times from 128 channels on, 1 to 2 times with 64. L2
// bandwidth is the limit (README). Source: CUTLASS documentation, "CUTLASS Convolution".
#include "kernels/common/cuda/wgmma_accumulators.hpp"
#include "kernels/convolution/cuda/wgmma/plan.hpp"

namespace stepladder::convolution {
namespace {

constexpr VariantInfo info{
    .name = "tf32_wgmma",
    .technique = Technique::cuda,
    .builds_on = "tf32_implicit_gemm",
    .adds = "wgmma; im2col gathered by asynchronous 16-byte copies, filters loaded by the TMA",
    .idea = Idea::tensor_cores,
    .precision = Precision::tf32,
    .nhwc = true,
    .place = Place::cuda,
    .bound_factor = 4,
    .operand_error = 0x1p-9 + 0x1p-20,
};

const Registration registration{
    info, make_wgmma_plan<Tf32Accumulators<256>, Tf32Accumulators<128>, Tf32Accumulators<64>>};

}  // namespace
}  // namespace stepladder::convolution
