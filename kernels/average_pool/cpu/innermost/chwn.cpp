// Average pooling with images on lanes (pooling.hpp). Expected over openmp in nchw, in cache: about
// equal for windows of 2 x 2 and 3 x 3, which openmp pools in registers too; no rows shorter than a
// vector, so more on small planes. Out of cache both read and write the same bytes.
#include "kernels/average_pool/cpu/innermost/pooling.hpp"

namespace stepladder::average_pool {
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

const Registration registration{info, make_plan<AveragePool, InnermostPooling>};

}  // namespace
}  // namespace stepladder::average_pool
