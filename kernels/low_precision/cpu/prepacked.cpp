// Weights that do not change, as in inference: prepare() packs them once for many products.
#include "kernels/low_precision/cpu/narrow_rows.hpp"

namespace stepladder::low_precision {
namespace {

constexpr VariantInfo info{
    .name = "prepacked",
    .technique = Technique::openmp,
    .builds_on = "packed_openmp",
    .adds = "B packed once for many products",
    .idea = Idea::packing,
    .threaded = true,
    .prepacked = true,
};

const Registration registration{info, packed_plan<true>};

}  // namespace
}  // namespace stepladder::low_precision
