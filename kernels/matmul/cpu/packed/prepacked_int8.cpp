// `prepacked` on operands quantized to int8, for inference. An instruction adds four products of
// neighbours along k to each lane, and packed weights are a quarter of the bytes.
//
// Expected over prepacked: up to 4x, where both are as wide, or where B streams from memory.
#include "kernels/common/cpu/narrow/dot_kernel.hpp"
#include "kernels/matmul/cpu/packed/quantized_product.hpp"

namespace stepladder::matmul {
namespace {

constexpr VariantInfo info{
    .name = "prepacked_int8",
    .technique = Technique::openmp,
    .builds_on = "prepacked",
    .adds = "operands quantized to int8, weights once for many products; dot products of four",
    .idea = Idea::dot_products,
    .precision = Precision::int8,
    .threaded = true,
    .prepacked = true,
    .epilogue = true,
    .quantization_error = 2.0 / 127 + 1.0 / (127 * 127),
};
static_assert(info.quantization_error == narrow::quantization_error);

std::unique_ptr<Plan> plan(const Problem& problem, const Resources& resources) {
  return quantized_product<narrow::DotKernel>(problem, resources.threads);
}

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::matmul
