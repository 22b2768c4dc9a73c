// Max pooling in oneDNN's own layout, blocks of 16 channels.
#include "kernels/max_pool/vendor/onednn_plan.hpp"

namespace stepladder::max_pool {
namespace {

constexpr VariantInfo info{
    .name = "onednn_blocked",
    .technique = Technique::vendor,
    .adds = "oneDNN's pooling primitive on blocks of 16 channels, the layout that it prefers",
    .layout = Layout::nchw16c,
    .threaded = true,
};

const Registration registration{info, make_plan<MaxPool, OneDnn>};

}  // namespace
}  // namespace stepladder::max_pool
