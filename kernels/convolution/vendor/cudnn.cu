// NVIDIA's library in true fp32: CUDNN_FMA_MATH keeps it off the tensor cores.
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
    .adds = "NVIDIA's library, fp32 arithmetic, its fastest direct or GEMM algorithm",
    .layouts = "nhwc",
    .place = Place::cuda,
};

const Registration registration{info, make};

}  // namespace
}  // namespace stepladder::convolution
