// `packed_bf16_openmp` with the matrix unit of each core (AMX) in place of dot products of vectors.
//
// Expected over packed_bf16_openmp: up to 30x in the product itself; rounding and packing, which
// take as long as before, leave 3 to 8x.
#include "kernels/common/cpu/narrow/amx_kernel.hpp"
#include "kernels/matmul/cpu/packed/rounded_product.hpp"

namespace stepladder::matmul {
namespace {

constexpr VariantInfo info{
    .name = "packed_bf16_amx",
    .technique = Technique::openmp,
    .builds_on = "packed_bf16_openmp",
    .adds = "the matrix unit: an instruction multiplies two tiles of 1 KiB",
    .idea = Idea::matrix_unit,
    .precision = Precision::bf16,
    .threaded = true,
    .epilogue = true,
    .operand_error = 0x1p-7 + 0x1p-16,  // (1 + 2^-8)^2 - 1
};

std::unique_ptr<Plan> plan(const Problem& problem, const Resources& resources) {
  require_here(Extension::amx_bf16);
  return rounded_product<narrow::AmxKernel>(problem, resources.threads);
}

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::matmul
