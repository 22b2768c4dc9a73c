// `packed` on many cores: each thread takes columns of C, or rows, what makes the largest part
// smaller, and packs for itself.
#include "kernels/low_precision/cpu/narrow_rows.hpp"

namespace stepladder::low_precision {
namespace {

constexpr VariantInfo info{
    .name = "packed_openmp",
    .technique = Technique::openmp,
    .builds_on = "packed",
    .adds = "columns of C, or its rows, divided among OpenMP threads",
    .idea = Idea::threads,
    .threaded = true,
};

const Registration registration{info, packed_plan<>};

}  // namespace
}  // namespace stepladder::low_precision
