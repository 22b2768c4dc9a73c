// `direct_tile` on numbers that are rounded to bf16, two in an element: of two source channels, or
// of two images where the sum runs over the batch (backward_weights). An instruction adds both
// products to a lane, so that half as many are needed. Operands and results in memory stay fp32.
//
// Expected over direct_tile: up to 2x. A single source channel, or image, leaves half of each
// element unused.
#include "kernels/common/cpu/extensions.hpp"
#include "kernels/convolution/cpu/direct_tile/plan.hpp"

namespace stepladder::convolution {
namespace {

constexpr VariantInfo info{
    .name = "direct_tile_bf16",
    .technique = Technique::openmp,
    .builds_on = "direct_tile",
    .adds = "operands rounded to bf16, two channels or images in a lane: dot products",
    .idea = Idea::dot_products,
    .precision = Precision::bf16,
    .isa = build_isa,
    .threaded = true,
    .operand_error = 0x1p-7 + 0x1p-16,  // (1 + 2^-8)^2 - 1
};

#if defined(__AVX512F__)
std::unique_ptr<Plan> plan(const Problem& problem, const Resources& resources) {
  require_here(Extension::avx512_bf16);
  return direct_tile_plan<Bf16Pairs>(problem, resources);
}

const Registration registration{info, plan};
#else
const Registration registration{info, "AVX512_BF16 belongs to AVX-512 only"};
#endif

}  // namespace
}  // namespace stepladder::convolution
