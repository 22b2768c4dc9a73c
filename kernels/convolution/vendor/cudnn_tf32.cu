// cuDNN on the tensor cores: operands in TF32 (8-bit exponent, 10-bit mantissa), accumulators in
// fp32. The error bound is that of cublas_tf32.
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
    .adds = "cuDNN with TF32 operands, its fastest direct or GEMM algorithm",
    .precision = Precision::tf32,
    .nhwc = true,
    .place = Place::cuda,
    .bound_factor = 4,
    .operand_error = 0x1p-9 + 0x1p-20,
};

const Registration registration{info, make};

}  // namespace
}  // namespace stepladder::convolution
