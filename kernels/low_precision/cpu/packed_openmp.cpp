// `packed` on many cores: each thread takes panels of B and packs for itself. A C that is narrower
// than a panel for each is divided by rows.
#include "kernels/low_precision/cpu/narrow_rows.hpp"

namespace stepladder::low_precision {
namespace {

constexpr VariantInfo info{
    .name = "packed_openmp",
    .technique = Technique::openmp,
    .builds_on = "packed",
    .adds = "panels of B, or rows of A if C is narrow, divided among OpenMP threads",
    .idea = Idea::threads,
    .threaded = true,
};

const Registration registration{info, packed_plan<>};

}  // namespace
}  // namespace stepladder::low_precision
