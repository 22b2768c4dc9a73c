// oneDNN's direct convolution, in the blocked layouts that it chooses.
#include "kernels/convolution/vendor/onednn_plan.hpp"

namespace stepladder::convolution {
namespace {

constexpr VariantInfo info{
    .name = "onednn_direct",
    .technique = Technique::vendor,
    .adds = "oneDNN's direct convolution, with the layouts that it chooses",
    .threaded = true,
};

const Registration registration{
    info, make_plan<Convolution, OneDnn<dnnl::algorithm::convolution_direct>>};

}  // namespace
}  // namespace stepladder::convolution
