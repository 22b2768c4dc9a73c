// Vectors of 4, 8 or 16 elements, with vector exponentials in place of calls of the C library.
#include "kernels/layers/cpu/simd/plan.hpp"

namespace stepladder::layers {
namespace {

constexpr VariantInfo info{
    .name = "simd",
    .technique = Technique::simd,
    .builds_on = "serial",
    .adds = "vectors of 4, 8 or 16 elements, with vector exponentials",
    .idea = Idea::vectors,
    .isa = build_isa,
};

const Registration registration{info, make_plan<Layers, VectorPlan>};

}  // namespace
}  // namespace stepladder::layers
