// cuDNN in fp32: CUDNN_FMA_MATH excludes the tensor cores.
#include <cudnn.h>

#include "kernels/convolution/vendor/cudnn_plan.hpp"

namespace stepladder::convolution {
namespace {

std::unique_ptr<Plan> make(const Problem& problem, const Resources&) {
  require_cuda();
  return std::make_unique<CudnnPlan>(problem, CUDNN_FMA_MATH);
}

constexpr VariantInfo info{
    .name = "cudnn",
    .technique = Technique::vendor,
    .adds = "cuDNN in fp32, its fastest direct or GEMM algorithm",
    .nhwc = true,
    .place = Place::cuda,
};

const Registration registration{info, make};

}  // namespace
}  // namespace stepladder::convolution
