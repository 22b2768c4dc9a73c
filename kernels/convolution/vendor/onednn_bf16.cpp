// oneDNN's direct convolution of operands that it rounds to bf16 as it reorders them.
#include "kernels/common/cpu/extensions.hpp"
#include "kernels/convolution/vendor/onednn_plan.hpp"

namespace stepladder::convolution {
namespace {

constexpr VariantInfo info{
    .name = "onednn_bf16",
    .technique = Technique::vendor,
    .adds = "oneDNN's direct convolution of bf16; run() rounds the operands",
    .precision = Precision::bf16,
    .threaded = true,
    .operand_error = 0x1p-7 + 0x1p-16,  // (1 + 2^-8)^2 - 1
};

std::unique_ptr<Plan> plan(const Problem& problem, const Resources& resources) {
  require_here(Extension::avx512_bf16);
  return std::make_unique<
      OneDnn<dnnl::algorithm::convolution_direct, dnnl::memory::data_type::bf16>>(problem,
                                                                                  resources);
}

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::convolution
