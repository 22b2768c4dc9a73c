// packed on many cores: each thread computes its own rectangle of C as packed would, and packs the
// panels of B for it into its own cache. There is nothing to wait for but the end. Products too
// small to pay for waking a thread use fewer of them.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/matmul/cpu/packed/packed_grid.hpp"

namespace stepladder::matmul {
namespace {

constexpr VariantInfo info{
    .name = "packed_openmp",
    .technique = Technique::openmp,
    .builds_on = "packed",
    .adds = "C split into a grid of shares, one for each OpenMP thread",
    .isa = build_isa,
    .threaded = true,
    .epilogue = true,
};

const Registration registration{info, make_plan<Matmul, PackedGrid<>>};

}  // namespace
}  // namespace stepladder::matmul
