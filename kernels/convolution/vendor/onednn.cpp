// oneDNN with the algorithm of its own choice. That may be Winograd's, hence its bound (see
// onednn_winograd.cpp).
#include "kernels/convolution/vendor/onednn_plan.hpp"

namespace stepladder::convolution {
namespace {

constexpr VariantInfo info{
    .name = "onednn",
    .technique = Technique::vendor,
    .adds = "oneDNN's convolution, in its own layouts with the algorithm it chooses",
    .threaded = true,
    .bound_factor = 1024,  // it may choose Winograd
    .normwise = true,
};

const Registration registration{info,
                                make_plan<Convolution, OneDnn<dnnl::algorithm::convolution_auto>>};

}  // namespace
}  // namespace stepladder::convolution
