// NVIDIA's library on the tensor cores: operands cut to TF32 (8-bit exponent, 10-bit fraction),
// sums in fp32.
//
// The bound. Cutting a float to a 10-bit fraction changes it by at most 2⁻¹⁰ of itself (rounding by
// half of that, but cuBLAS does not promise to round), so the product of two by at most
// 2⁻⁹ + 2⁻²⁰. The products are exact in fp32, and their sum errs by a few gamma(k + 2), the fp32
// bound: a tensor core may cut where fp32 rounds.
#include <cublas_v2.h>

#include "kernels/matmul/vendor/cublas_plan.hpp"

namespace stepladder::matmul {
namespace {

std::unique_ptr<Plan> make(const Problem& problem, const Resources&) {
  require_tf32();
  return std::make_unique<CublasPlan<CUBLAS_COMPUTE_32F_FAST_TF32>>(problem);
}

constexpr VariantInfo info{
    .name = "cublas_tf32",
    .technique = Technique::vendor,
    .adds = "NVIDIA's library, TF32 operands on the tensor cores",
    .precision = "tf32",
    .place = Place::cuda,
    .epilogue = true,
    .bound_factor = 4,
    .operand_error = 0x1p-9 + 0x1p-20,
};

const Registration registration{info, make};

}  // namespace
}  // namespace stepladder::matmul
