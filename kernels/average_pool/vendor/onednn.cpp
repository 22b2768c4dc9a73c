// oneDNN's average pooling on plain NCHW.
#include "kernels/average_pool/vendor/onednn_plan.hpp"

namespace stepladder::average_pool {
namespace {

constexpr VariantInfo info{
    .name = "onednn",
    .technique = Technique::vendor,
    .adds = "oneDNN's pooling primitive on the plain layout",
    .threaded = true,
};

const Registration registration{info, make_plan<AveragePool, OneDnn>};

}  // namespace
}  // namespace stepladder::average_pool
