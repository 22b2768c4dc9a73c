// `packed` with operands that are rounded to bf16 when they are packed, and an instruction that
// adds two products of neighbours along k to each lane: half as many instructions, and half as many
// bytes of packed operands. C and the operands in memory stay fp32, as master weights do in
// training.
//
// Expected over packed: up to 2x where both are as wide; less where packing, or C, is most of the
// time.
#include "kernels/common/cpu/narrow/dot_kernel.hpp"
#include "kernels/matmul/cpu/packed/rounded_product.hpp"

namespace stepladder::matmul {
namespace {

constexpr VariantInfo info{
    .name = "packed_bf16",
    .technique = Technique::simd,
    .builds_on = "packed",
    .adds = "operands rounded to bf16 when packed; dot products of two neighbours",
    .idea = Idea::dot_products,
    .precision = Precision::bf16,
    .epilogue = true,
    .operand_error = 0x1p-7 + 0x1p-16,  // (1 + 2^-8)^2 - 1
};

std::unique_ptr<Plan> plan(const Problem& problem, const Resources&) {
  return rounded_product<narrow::DotKernel>(problem, 1);
}

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::matmul
