// Squares transposed in registers, in blocks of whole cache lines.
#include "kernels/reorder/cpu/transposed.hpp"

namespace stepladder::reorder {
namespace {

constexpr VariantInfo info{
    .name = "transposed",
    .technique = Technique::openmp,
    .builds_on = "serial",
    .adds = "transposes squares in registers and moves whole cache lines, on all cores",
    .idea = Idea::cache_blocking,
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<Reorder, Transposed<transpose_in_strips, false>>};

}  // namespace
}  // namespace stepladder::reorder
