// NVIDIA's library on the tensor cores: operands cut to TF32 (8-bit exponent, 10-bit fraction),
// sums in fp32. The bound is that of cublas_tf32.
#include <cudnn.h>

#include "kernels/convolution/vendor/cudnn_plan.hpp"

namespace stepladder::convolution {
namespace {

std::unique_ptr<Plan> make(const Problem& problem, const Resources&) {
  require_tf32();
  return std::make_unique<CudnnPlan>(problem, CUDNN_DEFAULT_MATH);
}

constexpr VariantInfo info{
    .name = "cudnn_tf32",
    .technique = Technique::vendor,
    .adds = "NVIDIA's library, TF32 operands, its fastest direct or GEMM algorithm",
    .precision = "tf32",
    .layouts = "nhwc",
    .place = Place::cuda,
    .bound_factor = 4,
    .operand_error = 0x1p-9 + 0x1p-20,
};

const Registration registration{info, make};

}  // namespace
}  // namespace stepladder::convolution
