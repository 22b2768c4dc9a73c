// The convolution at the width of Hopper's tensor cores. tf32_implicit_gemm spends its instructions on the
// gathered factor: one element at a time through registers, rounded, stored, and fetched again by every warp.
// Here it comes 16 bytes, four channels, at a time, past the registers and in the background, by warps that
// do nothing else, and wgmma makes 64 x 128 x 8 products of four warps. See cuda_wgmma_product.hpp.
//
//   forward            y  [pixels, out channels]  =  x [pixels, terms]  · filters [out channels, terms]ᵀ
//   backward_data      dx [pixels, in channels]   =  dy [pixels, terms] · filters, turned round, likewise,
//                      once for each remainder that a pixel's row and column leave when divided by the stride
//   backward_weights   dw [terms, out channels]   =  x [pixels, terms]ᵀ · dy [out channels, pixels]ᵀ
//
// Where that makes few tiles the sums are cut into parts, which are added in their order.
//
// Four channels of a pixel are neighbours in NHWC. What lies otherwise is laid out anew in every run: x and dy
// in NCHW or with channels that are no multiple of four, dy for backward_weights, filters but for forward in
// NHWC. Results are written as the problem's layout wants them.
//
// Expected over tf32_implicit_gemm: 1.5 to 2.5 times from 128 channels on, 1 to 2 times with 64. 128 producing
// threads issue some 120 instructions each for a step of 128 x 128 x 32, whose products take 512 cycles of the
// tensor cores. What binds is the second-level cache: (128 + 128) · 32 floats for 2 · 128 · 128 · 32 FLOPs, 32 a
// byte, 43 with 256 columns, 21 with 64; at 5.5 TB/s that is 176, 236 and 117 TFLOP/s of 495. Pixels that taps
// share should come from the first-level cache instead, for which the ring of stages leaves 124 KiB, with 256
// columns some 60.
// Source: the implicit GEMM of CUTLASS's documentation, "CUTLASS Convolution".
//
// The bound. Of the factors' bits wgmma drops those that TF32 has not: each changes by at most 2⁻¹⁰ of itself, a
// product by at most 2⁻⁹ + 2⁻²⁰. The sums: a tensor core may cut each product and the sum that it adds to, and
// cuts the result, at 2⁻²³: 2 (m + 2) 2⁻²⁴ for m products that are not zeros, which with one channel in a piece
// of four are 2 of 8: 4 is enough.
#include "kernels/common/cuda/wgmma_accumulators.hpp"
#include "kernels/convolution/cuda/wgmma/plan.hpp"

namespace stepladder::convolution {
namespace {

constexpr VariantInfo info{
    .name = "tf32_wgmma",
    .technique = Technique::cuda,
    .builds_on = "tf32_implicit_gemm",
    .adds = "wgmma, one factor gathered 16 bytes at a time in the background, the other by the TMA",
    .precision = "tf32",
    .layouts = "nhwc",
    .place = Place::cuda,
    .bound_factor = 4,
    .operand_error = 0x1p-9 + 0x1p-20,
};

const Registration registration{info, make_wgmma_plan<Tf32Sums<256>, Tf32Sums<128>, Tf32Sums<64>>};

}  // namespace
}  // namespace stepladder::convolution
