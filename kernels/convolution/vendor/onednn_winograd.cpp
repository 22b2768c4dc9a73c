// oneDNN's Winograd convolution, F(4 x 4, 3 x 3): a quarter of the multiplications, paid with
// accuracy. Its transforms multiply by up to 8 and by fractions such as 1/24, so small integers no
// longer give exact sums and rounding errors grow about tenfold (Lavin and Gray, Fast algorithms
// for convolutional neural networks, 2016). The error of an element follows the magnitude of its
// whole tile, so the bound is that of the largest element.
#include "kernels/convolution/vendor/onednn_plan.hpp"

namespace stepladder::convolution {
namespace {

constexpr VariantInfo info{
    .name = "onednn_winograd",
    .technique = Technique::vendor,
    .adds = "oneDNN's Winograd convolution, in its own layouts",
    .threaded = true,
    .bound_factor = 1024,
    .normwise = true,
};

const Registration registration{
    info, make_plan<Convolution, OneDnn<dnnl::algorithm::convolution_winograd>>};

}  // namespace
}  // namespace stepladder::convolution
