// `simd`, on all cores.
#include "kernels/reorder/cpu/converted.hpp"

namespace stepladder::reorder {
namespace {

constexpr VariantInfo info{
    .name = "openmp",
    .technique = Technique::openmp,
    .builds_on = "simd",
    .adds = "a part of the numbers for each OpenMP thread",
    .idea = Idea::threads,
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<Reorder, Converted>};

}  // namespace
}  // namespace stepladder::reorder
