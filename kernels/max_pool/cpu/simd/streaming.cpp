// openmp for operands that exceed the caches. Windows alternate between rows of x, and the hardware
// prefetcher detects no stream, so software prefetches the rows in memory order. A store to a line
// that is not in cache first reads that line; dx, whose lines are all written whole, is stored past
// the caches instead (backward supports only rows of whole pairs of vectors).
//
// Expected out of cache: forward up to read bandwidth, backward half the traffic. In cache it
// loses: the prefetches cost a tenth, and the next reader of dx finds it in memory.
#include "kernels/max_pool/cpu/simd/pooling.hpp"

namespace stepladder::max_pool {
namespace {

constexpr VariantInfo info{
    .name = "streaming",
    .technique = Technique::openmp,
    .builds_on = "openmp",
    .adds = "x prefetched in memory order, dx stored past the caches",
    .idea = Idea::streaming_stores,
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info,
                                make_plan<MaxPool, PlanesPlan<MaxPool, SimdPooling, true, true>>};

}  // namespace
}  // namespace stepladder::max_pool
