// separable on vectors of 4, 8 or 16 columns. Rows are added as they are in memory; a stride of 2
// separates even from odd columns with a shuffle, backward merges them again. The rows of a pass
// are few enough for L1, so that memory is read and written once and its bandwidth is the limit.
#include "kernels/average_pool/cpu/simd/pooling.hpp"

namespace stepladder::average_pool {
namespace {

constexpr VariantInfo info{
    .name = "simd",
    .technique = Technique::simd,
    .builds_on = "separable",
    .adds = "vectors of 4, 8 or 16 columns, in passes over rows that stay in L1",
    .idea = Idea::vectors,
    .isa = build_isa,
};

const Registration registration{
    info, make_plan<AveragePool, PlanesPlan<AveragePool, SimdPooling, false>>};

}  // namespace
}  // namespace stepladder::average_pool
