// Average pooling in oneDNN's own layout, blocks of 16 channels.
#include "kernels/average_pool/vendor/onednn_plan.hpp"

namespace stepladder::average_pool {
namespace {

constexpr VariantInfo info{
    .name = "onednn_blocked",
    .technique = Technique::vendor,
    .adds = "oneDNN's pooling primitive on blocks of 16 channels, the layout that it prefers",
    .layout = Layout::nchw16c,
    .threaded = true,
};

const Registration registration{info, make_plan<AveragePool, OneDnn>};

}  // namespace
}  // namespace stepladder::average_pool
