// oneDNN's max pooling on plain NCHW.
#include "kernels/max_pool/vendor/onednn_plan.hpp"

namespace stepladder::max_pool {
namespace {

constexpr VariantInfo info{
    .name = "onednn",
    .technique = Technique::vendor,
    .adds = "oneDNN's pooling primitive on the plain layout",
    .threaded = true,
};

const Registration registration{info, make_plan<MaxPool, OneDnn>};

}  // namespace
}  // namespace stepladder::max_pool
