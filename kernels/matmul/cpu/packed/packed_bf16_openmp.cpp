// `packed_bf16` on many cores: each thread takes panels of B, or rows of A where C is narrow, and
// packs for itself.
#include "kernels/matmul/cpu/packed/rounded_product.hpp"

namespace stepladder::matmul {
namespace {

constexpr VariantInfo info{
    .name = "packed_bf16_openmp",
    .technique = Technique::openmp,
    .builds_on = "packed_bf16",
    .adds = "panels of B, or rows of A if C is narrow, divided among OpenMP threads",
    .idea = Idea::threads,
    .precision = Precision::bf16,
    .threaded = true,
    .epilogue = true,
    .operand_error = 0x1p-7 + 0x1p-16,  // (1 + 2^-8)^2 - 1
};

std::unique_ptr<Plan> plan(const Problem& problem, const Resources& resources) {
  return std::make_unique<RoundedProduct>(problem, resources.threads);
}

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::matmul
