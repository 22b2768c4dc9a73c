// A convolution with a 1 x 1 kernel as the matrix product that it is, without unfolding: weights
// times the pixels that stride and padding leave connected (pixel_pairs.hpp). Pixels are taken
// from the whole batch, so images of 7 x 7 fill the lanes as well as large ones. Input pixels that
// the kernel never reads cost one store of zero.
//
// Expected over direct_tile, whose tiles end with a row of the image: 1.1x to 1.2x on images of 7
// x 7 and 14 x 14, more with a stride of 2, where direct_tile broadcasts pixel by pixel.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/convolution/cpu/openmp_plan.hpp"
#include "kernels/convolution/cpu/pointwise/backward_data.hpp"
#include "kernels/convolution/cpu/pointwise/backward_weights.hpp"
#include "kernels/convolution/cpu/pointwise/correlation.hpp"

namespace stepladder::convolution {
namespace {

std::unique_ptr<ThreadedConvolution> make_convolution(const Problem& p, int threads) {
  if (p.kernel_h != 1 || p.kernel_w != 1) throw Unsupported("built for kernels of 1 x 1");
  if (p.direction == Direction::backward_weights)
    return std::make_unique<PointwiseBackwardWeights>(p, threads);
  // PointwiseBackwardData transposes dx, PointwiseCorrelation reads w by columns. Per element, the
  // former costs a third of the latter.
  const std::int64_t pixels = p.batch * p.out_h() * p.out_w();
  if (p.direction == Direction::backward_data && pixels < 3 * p.group_out())
    return std::make_unique<PointwiseBackwardData>(p, threads);
  return std::make_unique<PointwiseCorrelation>(p, threads);
}

std::unique_ptr<Plan> plan(const Problem& problem, const Resources& resources) {
  return std::make_unique<OpenMpPlan>(make_convolution(problem, resources.threads),
                                      resources.threads);
}

constexpr VariantInfo info{
    .name = "pointwise",
    .technique = Technique::openmp,
    .builds_on = "direct_tile",
    .adds = "1 x 1 kernels as a matrix product over the pixels of the whole batch",
    .idea = Idea::algorithm,
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::convolution
