// oneDNN's direct convolution, on blocked layouts of its choice.
#include "kernels/convolution/vendor/onednn_plan.hpp"

namespace stepladder::convolution {
namespace {

constexpr VariantInfo info{
    .name = "onednn_direct",
    .technique = Technique::vendor,
    .adds = "oneDNN's direct convolution, in its own layouts",
    .threaded = true,
};

const Registration registration{
    info, make_plan<Convolution, OneDnn<dnnl::algorithm::convolution_direct>>};

}  // namespace
}  // namespace stepladder::convolution
