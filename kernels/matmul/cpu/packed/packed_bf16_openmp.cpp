// `packed_bf16` on many cores: each thread takes columns of C, or rows, what makes the largest part
// smaller, and packs for itself.
#include "kernels/common/cpu/narrow/dot_kernel.hpp"
#include "kernels/matmul/cpu/packed/rounded_product.hpp"

namespace stepladder::matmul {
namespace {

constexpr VariantInfo info{
    .name = "packed_bf16_openmp",
    .technique = Technique::openmp,
    .builds_on = "packed_bf16",
    .adds = "columns of C, or its rows, divided among OpenMP threads",
    .idea = Idea::threads,
    .precision = Precision::bf16,
    .threaded = true,
    .epilogue = true,
    .operand_error = 0x1p-7 + 0x1p-16,  // (1 + 2^-8)^2 - 1
};

std::unique_ptr<Plan> plan(const Problem& problem, const Resources& resources) {
  return rounded_product<narrow::DotKernel>(problem, resources.threads);
}

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::matmul
