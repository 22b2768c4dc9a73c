// A convolution with a 1 x 1 kernel is a matrix product, and nothing has to be unfolded: the weights
// are one factor, the pixels that a stride and padding leave connected the other. Pixels are taken
// through the whole batch, so that images of 7 x 7 fill the lanes like large ones, and those that the
// kernel never touches cost nothing but a zero.
//
// Expected over direct_tile, whose tile ends with a row of the image: 1.1x to 1.2x on images of 7 x 7
// and 14 x 14; with a stride of 2, where direct_tile reads and broadcasts pixel by pixel, more.
// See pointwise_correlation.hpp, pointwise_data_gradient.hpp and pointwise_weight_gradient.hpp.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/convolution/cpu/openmp_plan.hpp"
#include "kernels/convolution/cpu/pointwise/forward.hpp"
#include "kernels/convolution/cpu/pointwise/backward_data.hpp"
#include "kernels/convolution/cpu/pointwise/backward_weights.hpp"

namespace stepladder::convolution {
namespace {

std::unique_ptr<Steps> steps_of(const Problem& p, int threads) {
  if (p.kernel_h != 1 || p.kernel_w != 1) throw Unsupported("built for kernels of 1 x 1");
  if (p.direction == Direction::backward_weights)
    return std::make_unique<PointwiseWeightGradient>(p, threads);
  // Turned round, backward_data transposes dx; as it is, it reads w along columns. The former costs
  // a third of the latter, for an element.
  const std::int64_t pixels = p.batch * p.out_h() * p.out_w();
  if (p.direction == Direction::backward_data && pixels < 3 * p.group_out())
    return std::make_unique<PointwiseDataGradient>(p, threads);
  return std::make_unique<PointwiseCorrelation>(p, threads);
}

std::unique_ptr<Plan> plan(const Problem& problem, const Resources& resources) {
  return std::make_unique<OpenMpPlan>(steps_of(problem, resources.threads), resources.threads);
}

constexpr VariantInfo info{
    .name = "pointwise",
    .technique = Technique::openmp,
    .builds_on = "direct_tile",
    .adds = "a 1 x 1 kernel as the matrix product it is, over the pixels of the whole batch",
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::convolution
