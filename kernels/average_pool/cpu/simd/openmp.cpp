// simd on every core: planes are independent, and each thread has a contiguous range of them.
// Out of cache it gains only if one core cannot use the machine's full memory bandwidth. Small
// problems run on one thread, because waking the others would cost more.
#include "kernels/average_pool/cpu/simd/pooling.hpp"

namespace stepladder::average_pool {
namespace {

constexpr VariantInfo info{
    .name = "openmp",
    .technique = Technique::openmp,
    .builds_on = "simd",
    .adds = "a contiguous range of planes for each thread",
    .idea = Idea::threads,
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info,
                                make_plan<AveragePool, PlanesPlan<AveragePool, SimdPooling, true>>};

}  // namespace
}  // namespace stepladder::average_pool
