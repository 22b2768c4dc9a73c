// `packed` on many cores: C is divided into a grid. Each thread computes one rectangle and packs
// its panels of B into its own cache. Threads synchronize only at the end. With a long K and a
// small C they divide K and, after one more barrier, add their partial sums. Small products use
// fewer threads, because waking one costs more.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/matmul/cpu/packed/packed_grid.hpp"

namespace stepladder::matmul {
namespace {

constexpr VariantInfo info{
    .name = "packed_openmp",
    .technique = Technique::openmp,
    .builds_on = "packed",
    .adds = "C divided into a grid, one rectangle per OpenMP thread; or a long K, if C is small",
    .idea = Idea::threads,
    .isa = build_isa,
    .threaded = true,
    .epilogue = true,
};

const Registration registration{info, make_plan<Matmul, PackedGrid<>>};

}  // namespace
}  // namespace stepladder::matmul
