// Max pooling with images on lanes (pooling.hpp). Expected over openmp in nchw, in cache: no
// shuffles that gather every second column, and no rows shorter than a vector: 1.2x to 2x with
// batches of whole vectors. Out of cache both read and write the same bytes.
#include "kernels/max_pool/cpu/innermost/pooling.hpp"

namespace stepladder::max_pool {
namespace {

constexpr VariantInfo info{
    .name = "chwn",
    .technique = Technique::openmp,
    .builds_on = "openmp",
    .adds = "images on lanes, in layout chwn: all lanes have the same window",
    .idea = Idea::layout,
    .layout = Layout::chwn,
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<MaxPool, InnermostPooling>};

}  // namespace
}  // namespace stepladder::max_pool
