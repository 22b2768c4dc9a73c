// Max pooling with the 16 channels of a block on lanes (pooling.hpp). Expected over openmp in nchw,
// in cache: as chwn, and with every batch. Padding channels cost as much as others.
#include "kernels/max_pool/cpu/innermost/pooling.hpp"

namespace stepladder::max_pool {
namespace {

constexpr VariantInfo info{
    .name = "nchw16c",
    .technique = Technique::openmp,
    .builds_on = "openmp",
    .adds = "blocks of 16 channels on lanes, in layout nchw16c: all lanes have the same window",
    .idea = Idea::layout,
    .layout = Layout::nchw16c,
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<MaxPool, InnermostPooling>};

}  // namespace
}  // namespace stepladder::max_pool
