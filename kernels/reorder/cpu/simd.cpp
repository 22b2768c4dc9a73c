// Formats converted in vectors (kernels/common/cpu/narrow_vectors.hpp).
#include "kernels/reorder/cpu/converted.hpp"

namespace stepladder::reorder {
namespace {

constexpr VariantInfo info{
    .name = "simd",
    .technique = Technique::simd,
    .builds_on = "serial",
    .adds = "vectors of 4, 8 or 16 numbers",
    .idea = Idea::vectors,
    .isa = build_isa,
};

const Registration registration{info, make_plan<Reorder, Converted>};

}  // namespace
}  // namespace stepladder::reorder
