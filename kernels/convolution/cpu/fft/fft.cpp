// Convolution by fast Fourier transforms: the transform of a correlation is the product of the
// transforms. Images are cut into overlapping tiles of 8 x 8 to 64 x 64 elements (overlap-save);
// tiles and filters are transformed, multiplied frequency by frequency, and transformed back. With
// an 11 x 11 kernel a tile of 24 x 24 gives 14 x 14 outputs for 290 complex products, 1,160 real
// ones instead of 23,716. As in winograd, transforms are shared among filters and images, and each
// frequency is one product of (complex) matrices.
//
// Expected over direct_tile on 56 x 56 images with 64 channels: 3 times fewer products for 3 x 3, 9
// times for 5 x 5, 18 times for 11 x 11, less the transforms, a third to a half of the time. The
// larger the filter, the larger the gain. Sources: Mathieu, Henaff and LeCun, Fast training of
// convolutional networks through FFTs, 2014; Zlateski et al., FFT convolutions are faster than
// Winograd on modern CPUs, 2018.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/convolution/cpu/fft/backward_weights.hpp"
#include "kernels/convolution/cpu/fft/correlation.hpp"
#include "kernels/convolution/cpu/fft/tile_size.hpp"
#include "kernels/convolution/cpu/openmp_plan.hpp"

namespace stepladder::convolution {
namespace {

std::unique_ptr<ThreadedConvolution> make_convolution(const Problem& problem, int threads) {
  const FftTile tile = fft_tile(problem);
  if (problem.direction == Direction::backward_weights)
    return std::make_unique<FftBackwardWeights>(problem, tile, threads);
  return std::make_unique<FftCorrelation>(problem, tile, threads);
}

std::unique_ptr<Plan> plan(const Problem& problem, const Resources& resources) {
  return std::make_unique<OpenMpPlan>(make_convolution(problem, resources.threads),
                                      resources.threads);
}

constexpr VariantInfo info{
    .name = "fft",
    .technique = Technique::openmp,
    .builds_on = "direct_tile",
    .adds = "one product per frequency: tiles and filters transformed by FFT, at any filter size",
    .idea = Idea::algorithm,
    .isa = build_isa,
    .threaded = true,
    .bound_factor = 64,
    .normwise = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::convolution
