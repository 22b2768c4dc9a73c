// openmp for what no cache holds. Windows read two rows of x in turns, and a processor that looks for
// streams of lines finds none: so the rows are announced some way ahead, in the order of memory. And
// a store to a line that is not in the cache first reads the line: dx, of which every line is written
// whole, goes past the caches (in rows of whole vectors: other problems it does not take).
//
// Expected out of cache: forward up to the bandwidth of a plain read, backward half of the traffic. In
// cache it loses: the announcements cost a tenth, and whoever needs dx next finds it in memory.
#include "kernels/max_pool/cpu/simd/openmp_pooling.hpp"

namespace stepladder::max_pool {
namespace {

constexpr VariantInfo info{
    .name = "streaming",
    .technique = Technique::openmp,
    .builds_on = "openmp",
    .adds = "x announced in the order of memory, dx written past the caches",
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<MaxPool, OpenMpPooling<true>>};

}  // namespace
}  // namespace stepladder::max_pool
