// Winograd's convolution: fewer multiplications, on tiles of 8 x 8 or 6 x 6 elements, in all three
// directions. With a 5 x 5 kernel a tile of 4 x 4 outputs takes 64 products instead of 400, with a
// 3 x 3 kernel one of 6 x 6 outputs takes 64 instead of 324. The transforms consist of additions
// and multiplications by constants, and are shared: each image is transformed once for all
// filters, each filter once for all images. Between them is one matrix product per position of the
// tile.
//
// Expected: on 14 x 14 images with 5 x 5 kernels 4 times fewer products than direct_tile (tiles
// overhang the image, and direct_tile skips padding). Less the transforms, a fifth of the time,
// that is 2x to 3x from 32 channels on. Few channels do not repay the transforms. The price is
// accuracy: large intermediate values cancel, and errors grow about tenfold.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/convolution/cpu/openmp_plan.hpp"
#include "kernels/convolution/cpu/winograd/backward_weights.hpp"
#include "kernels/convolution/cpu/winograd/correlation.hpp"
#include "kernels/convolution/cpu/winograd/many_channel_backward_weights.hpp"
#include "kernels/convolution/winograd_size.hpp"

namespace stepladder::convolution {
namespace {

template <int pairs, int kernel>
std::unique_ptr<ThreadedConvolution> make_convolution(const Problem& problem, int threads) {
  if (problem.direction == Direction::backward_weights) {
    const std::int64_t outputs = WinogradGradientTiles<pairs, kernel>::outputs;
    const TileGrid grid(problem.batch, ceil_div(problem.out_h(), outputs),
                        ceil_div(problem.out_w(), outputs));
    if (problem.groups == 1 && grid.tiles() <= std::max(problem.in_channels, problem.out_channels))
      return std::make_unique<WinogradManyChannelBackwardWeights<pairs, kernel>>(problem, threads);
    return std::make_unique<WinogradBackwardWeights<pairs, kernel>>(problem, threads);
  }
  return std::make_unique<WinogradCorrelation<pairs, kernel>>(problem, threads);
}

std::unique_ptr<Plan> plan(const Problem& problem, const Resources& resources) {
  const int threads = resources.threads;
  return std::make_unique<OpenMpPlan>(with_fewest_products(problem,
                                                           [&]<int pairs, int kernel>() {
                                                             return make_convolution<pairs, kernel>(
                                                                 problem, threads);
                                                           }),
                                      threads);
}

constexpr VariantInfo info{
    .name = "winograd",
    .technique = Technique::openmp,
    .builds_on = "direct_tile",
    .adds = "4 to 6 times fewer products: tiles transformed, multiplied by position, combined",
    .idea = Idea::algorithm,
    .isa = build_isa,
    .threaded = true,
    .bound_factor = 512,
    .normwise = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::convolution
