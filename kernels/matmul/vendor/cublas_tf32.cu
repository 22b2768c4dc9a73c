// cuBLAS on the tensor cores: TF32 operands (8-bit exponent, 10-bit mantissa), fp32 accumulation.
//
// Error bound: truncation to a 10-bit mantissa changes an operand by at most 2⁻¹⁰ of itself, so a
// product by at most 2⁻⁹ + 2⁻²⁰. (Rounding would change it by half of that, but cuBLAS does not
// promise to round.) The products are exact in fp32. Their sum errs by a few times the fp32 bound
// gamma(k + 2), since a tensor core may truncate where fp32 rounds.
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
    .adds = "cuBLAS, TF32 operands on the tensor cores",
    .precision = Precision::tf32,
    .place = Place::cuda,
    .epilogue = true,
    .bound_factor = 4,
    .operand_error = 0x1p-9 + 0x1p-20,
};

const Registration registration{info, make};

}  // namespace
}  // namespace stepladder::matmul
