// NVIDIA's library on the tensor cores: operands cut to TF32 (8-bit exponent, 10-bit fraction),
// sums in fp32. The bound is that of TF32 matmul, with the products summed into one element in
// place of k: cutting both factors changes a product by at most e = 2⁻⁹ + 2⁻²⁰. In units of the
// fp32 bound that is largest where a single product is summed, e / (3·2⁻²⁴) = 10,928, to which the
// sum adds a few.
#include <cudnn.h>

#include "kernels/convolution/cudnn_plan.hpp"

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
    .place = Place::cuda,
    .bound_factor = 11000,
};

const Registration registration{info, make};

}  // namespace
}  // namespace stepladder::convolution
