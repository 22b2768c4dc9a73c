// oneDNN with the algorithm that it chooses. That may be Winograd, hence the error bound of
// onednn_winograd.cpp.
#include "kernels/convolution/vendor/onednn_plan.hpp"

namespace stepladder::convolution {
namespace {

constexpr VariantInfo info{
    .name = "onednn",
    .technique = Technique::vendor,
    .adds = "oneDNN's convolution, with the layouts and the algorithm that it chooses",
    .threaded = true,
    .bound_factor = 1024,  // it may choose Winograd
    .normwise = true,
    .chooses_algorithm = true,
};

const Registration registration{info,
                                make_plan<Convolution, OneDnn<dnnl::algorithm::convolution_auto>>};

}  // namespace
}  // namespace stepladder::convolution
