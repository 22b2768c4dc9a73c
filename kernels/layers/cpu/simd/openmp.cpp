// simd on all cores: each thread works on one contiguous range of elements, channels or rows. Small
// layers stay on one thread: waking a second one costs more.
#include "kernels/layers/cpu/simd/plan.hpp"

namespace stepladder::layers {
namespace {

constexpr VariantInfo info{
    .name = "openmp",
    .technique = Technique::openmp,
    .builds_on = "simd",
    .adds = "one contiguous range of elements, channels or rows per thread",
    .idea = Idea::threads,
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<Layers, VectorPlan>};

}  // namespace
}  // namespace stepladder::layers
