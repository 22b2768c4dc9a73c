// oneDNN's direct convolution in its own layout, blocks of 16 channels: x and y need no reorder.
// The filters do, into blocks of 16 x 16 channels, in every run, as in training.
#include "kernels/convolution/vendor/onednn_plan.hpp"

namespace stepladder::convolution {
namespace {

constexpr VariantInfo info{
    .name = "onednn_blocked",
    .technique = Technique::vendor,
    .adds = "oneDNN's direct convolution on blocks of 16 channels, the layout that it prefers",
    .layout = Layout::nchw16c,
    .threaded = true,
};

const Registration registration{
    info, make_plan<Convolution, OneDnn<dnnl::algorithm::convolution_direct>>};

}  // namespace
}  // namespace stepladder::convolution
