// `packed` with the matrix unit of the CPU (AMX) in place of dot products of vectors.
#include "kernels/low_precision/cpu/amx_plan.hpp"

namespace stepladder::low_precision {
namespace {

constexpr VariantInfo info{
    .name = "amx",
    .technique = Technique::simd,
    .builds_on = "packed",
    .adds = "the matrix unit: an instruction multiplies two tiles of 1 KiB",
    .idea = Idea::matrix_unit,
};

const Registration registration{info, amx_plan<>};

}  // namespace
}  // namespace stepladder::low_precision
