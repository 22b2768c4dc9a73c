// Fewer multiplications: Winograd's convolution on tiles of 8 x 8 or 6 x 6 elements, in all three
// directions. A 5 x 5 kernel needs 64 products for a tile of 4 x 4 outputs where the definition has
// 400, a 3 x 3 kernel 64 for 6 x 6 where it has 324; the rest are additions and multiplications
// with constants, which the channels share: each image is transformed once for all filters, each
// filter once for all images. In between stands a matrix product for each position of the tile.
//
// Expected: on 14 x 14 images with 5 x 5 kernels 4 times fewer products than direct_tile (tiles
// overhang, and direct_tile leaves out padding), less the transforms, which are a fifth of the
// time: 2x to 3x with 32 channels and more. With few channels there is nothing to share them.
// The price is accuracy: large intermediate values cancel, and errors grow some tenfold.
// See winograd_points.hpp, winograd_tiles.hpp, winograd_correlation.hpp,
// winograd_weight_gradient.hpp and, for many channels, winograd_wide_gradient.hpp.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/convolution/cpu/openmp_plan.hpp"
#include "kernels/convolution/cpu/winograd/correlation.hpp"
#include "kernels/convolution/winograd_size.hpp"
#include "kernels/convolution/cpu/winograd/backward_weights.hpp"
#include "kernels/convolution/cpu/winograd/wide_backward_weights.hpp"

namespace stepladder::convolution {
namespace {

template <int pairs, int kernel>
std::unique_ptr<Steps> steps_of(const Problem& problem, int threads) {
  if (problem.direction == Direction::backward_weights) {
    const TileGrid grid(problem.batch, problem.out_h(), problem.out_w(),
                        WinogradGradient<pairs, kernel>::outputs);
    if (problem.groups == 1 && grid.tiles() <= std::max(problem.in_channels, problem.out_channels))
      return std::make_unique<WinogradWideGradient<pairs, kernel>>(problem, threads);
    return std::make_unique<WinogradWeightGradient<pairs, kernel>>(problem, threads);
  }
  return std::make_unique<WinogradCorrelation<pairs, kernel>>(problem, threads);
}

std::unique_ptr<Plan> plan(const Problem& problem, const Resources& resources) {
  const int threads = resources.threads;
  return std::make_unique<OpenMpPlan>(
      with_fewest_products(
          problem,
          [&]<int pairs, int kernel>() { return steps_of<pairs, kernel>(problem, threads); }),
      threads);
}

constexpr VariantInfo info{
    .name = "winograd",
    .technique = Technique::openmp,
    .builds_on = "direct_tile",
    .adds = "4 to 6 times fewer products: tiles transformed, multiplied by position, combined",
    .isa = build_isa,
    .threaded = true,
    .bound_factor = 512,
    .normwise = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::convolution
