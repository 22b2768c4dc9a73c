// cuBLAS in fp32. CUBLAS_COMPUTE_32F excludes TF32 and tensor cores and lets cuBLAS choose among
// all its fp32 kernels.
#include <cublas_v2.h>

#include "kernels/matmul/vendor/cublas_plan.hpp"

namespace stepladder::matmul {
namespace {

std::unique_ptr<Plan> make(const Problem& problem, const Resources&) {
  require_cuda();
  return std::make_unique<CublasPlan<CUBLAS_COMPUTE_32F>>(problem);
}

constexpr VariantInfo info{
    .name = "cublas",
    .technique = Technique::vendor,
    .adds = "cuBLAS, fp32 arithmetic",
    .place = Place::cuda,
    .epilogue = true,
};

const Registration registration{info, make};

}  // namespace
}  // namespace stepladder::matmul
