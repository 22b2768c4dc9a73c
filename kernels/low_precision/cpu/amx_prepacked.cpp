// `prepacked` with the matrix unit.
#include "kernels/low_precision/cpu/amx_plan.hpp"

namespace stepladder::low_precision {
namespace {

constexpr VariantInfo info{
    .name = "amx_prepacked",
    .technique = Technique::openmp,
    .builds_on = "amx_openmp",
    .adds = "B packed once for many products",
    .idea = Idea::packing,
    .threaded = true,
    .prepacked = true,
};

const Registration registration{info, amx_plan<true>};

}  // namespace
}  // namespace stepladder::low_precision
