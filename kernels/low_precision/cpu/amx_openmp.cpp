// `amx` on many cores, divided as in `packed_openmp`. Each has a matrix unit of its own.
#include "kernels/low_precision/cpu/amx_plan.hpp"

namespace stepladder::low_precision {
namespace {

constexpr VariantInfo info{
    .name = "amx_openmp",
    .technique = Technique::openmp,
    .builds_on = "amx",
    .adds = "columns of C, or its rows, divided among OpenMP threads",
    .idea = Idea::threads,
    .threaded = true,
};

const Registration registration{info, amx_plan<>};

}  // namespace
}  // namespace stepladder::low_precision
