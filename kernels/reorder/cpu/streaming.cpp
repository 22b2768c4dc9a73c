// `transposed` with stores that do not fetch the line which they overwrite: a third less traffic.
// A gain where the result does not fit into the caches, or its rows compete for a set of them; a
// loss elsewhere.
#include "kernels/reorder/cpu/transposed.hpp"

namespace stepladder::reorder {
namespace {

constexpr VariantInfo info{
    .name = "streaming",
    .technique = Technique::openmp,
    .builds_on = "transposed",
    .adds = "writes whole lines of the result past the caches, in squares of 16 x 16",
    .idea = Idea::streaming_stores,
    .isa = build_isa,
    .threaded = true,
};

#if defined(__AVX512F__)
const Registration registration{info, make_plan<Reorder, Transposed<transpose_streaming, true>>};
#else
const Registration registration{info, "a vector is a whole cache line in AVX-512 only"};
#endif

}  // namespace
}  // namespace stepladder::reorder
