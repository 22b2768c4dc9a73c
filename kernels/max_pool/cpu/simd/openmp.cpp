// simd on every core: planes are independent, and each thread takes a stretch of them. Pays where one
// core cannot draw the machine's full memory bandwidth. A small problem is left to one thread: waking
// the others would cost more.
#include "kernels/max_pool/cpu/simd/openmp_pooling.hpp"

namespace stepladder::max_pool {
namespace {

constexpr VariantInfo info{
    .name = "openmp",
    .technique = Technique::openmp,
    .builds_on = "simd",
    .adds = "a stretch of planes for each thread",
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<MaxPool, OpenMpPooling<false>>};

}  // namespace
}  // namespace stepladder::max_pool
