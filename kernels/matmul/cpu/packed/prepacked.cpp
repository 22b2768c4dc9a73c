// Prepacking: prepare() packs all panels of B once, for weights that do not change, as in
// inference. Compared with packed_openmp it saves one store per element of B, about 1 % where A has
// 64 rows, and for a transposed B the transposition, 0.4 cycles per element: a tenth of the product
// with 64 rows, a third with 16. In training it saves nothing: weights change with every step.
// Where packed_openmp reads B in place, or computes the transposed product, so does prepacked.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/matmul/cpu/packed/packed_grid.hpp"

namespace stepladder::matmul {
namespace {

constexpr VariantInfo info{
    .name = "prepacked",
    .technique = Technique::openmp,
    .builds_on = "packed_openmp",
    .adds = "B packed once for many products, for weights that do not change",
    .idea = Idea::packing,
    .isa = build_isa,
    .threaded = true,
    .prepacked = true,
};

const Registration registration{info, make_plan<Matmul, PackedGrid<false, true>>};

}  // namespace
}  // namespace stepladder::matmul
