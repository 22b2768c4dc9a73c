// `direct_tile_bf16` with the matrix unit of each core (AMX), which multiplies two tiles of 1 KiB
// by one instruction: 16 x 16 sums of 32 products. A row of a tile is a cache line of 32 channels
// of a pixel; 16 neighbouring pixels are a tile, and a tap is an offset of whole lines. Operands
// and results in memory stay fp32.
//
// Expected over direct_tile_bf16: 2 to 10x; least with few channels, where making the lines counts.
#include "kernels/common/cpu/extensions.hpp"
#include "kernels/convolution/cpu/direct_amx/backward_weights.hpp"
#include "kernels/convolution/cpu/direct_amx/correlation.hpp"
#include "kernels/convolution/cpu/openmp_plan.hpp"

namespace stepladder::convolution {
namespace {

constexpr VariantInfo info{
    .name = "direct_amx",
    .technique = Technique::openmp,
    .builds_on = "direct_tile_bf16",
    .adds = "the matrix unit: an instruction multiplies two tiles of 1 KiB",
    .idea = Idea::matrix_unit,
    .precision = Precision::bf16,
    .threaded = true,
    .operand_error = 0x1p-7 + 0x1p-16,  // (1 + 2^-8)^2 - 1
};

std::unique_ptr<Plan> plan(const Problem& problem, const Resources& resources) {
  require_here(Extension::avx512_bf16);  // rounds the operands
  require_here(Extension::amx_bf16);
  std::unique_ptr<ThreadedConvolution> convolution;
  if (problem.direction == Direction::backward_weights)
    convolution = std::make_unique<AmxBackwardWeights>(problem, resources.threads);
  else
    convolution = std::make_unique<AmxCorrelation<PairOfSlots>>(problem, resources.threads);
  return std::make_unique<OpenMpPlan>(std::move(convolution), resources.threads);
}

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::convolution
