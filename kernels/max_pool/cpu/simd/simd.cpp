// Vectors along the output row: one instruction computes 4, 8 or 16 outputs, from loads and
// shuffles of x. Backward gathers instead of scattering: each dx is computed from the windows that
// cover it and written once, without zeroing. Memory bandwidth becomes the limit.
#include "kernels/max_pool/cpu/simd/pooling.hpp"

namespace stepladder::max_pool {
namespace {

constexpr VariantInfo info{
    .name = "simd",
    .technique = Technique::simd,
    .builds_on = "branchless",
    .adds = "vectors of 4, 8 or 16 outputs; backward gathers and writes each dx once",
    .idea = Idea::vectors,
    .isa = build_isa,
};

const Registration registration{info, make_plan<MaxPool, PlanesPlan<MaxPool, SimdPooling, false>>};

}  // namespace
}  // namespace stepladder::max_pool
