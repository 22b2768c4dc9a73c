// oneDNN's Winograd convolution, F(4 x 4, 3 x 3): a quarter of the multiplications, at lower
// accuracy. Its transforms multiply by up to 8 and by fractions such as 1/24: sums of small
// integers are no longer exact, and rounding errors are about ten times larger (Lavin and Gray,
// Fast algorithms for convolutional neural networks, 2016). The error of an element depends on the
// magnitudes of its whole tile, so the bound is that of the largest element.
#include "kernels/convolution/vendor/onednn_plan.hpp"

namespace stepladder::convolution {
namespace {

constexpr VariantInfo info{
    .name = "onednn_winograd",
    .technique = Technique::vendor,
    .adds = "oneDNN's Winograd convolution, with the layouts that it chooses",
    .threaded = true,
    .bound_factor = 1024,
    .normwise = true,
};

const Registration registration{
    info, make_plan<Convolution, OneDnn<dnnl::algorithm::convolution_winograd>>};

}  // namespace
}  // namespace stepladder::convolution
