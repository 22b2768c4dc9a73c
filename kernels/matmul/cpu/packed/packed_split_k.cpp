// K divided among the threads in any case, where `packed_openmp` divides C unless K is long. Adding
// the partial sums costs a second barrier, and alone the rung is seldom the fastest. In a training
// step it may be: each thread reads whole rows of B, the same in every step. If B is the weights,
// these are most of the rows whose gradient it computes and which it updates, so that they stay in
// its cache. Columns of B would come from the caches of two cores.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/matmul/cpu/packed/packed_grid.hpp"

namespace stepladder::matmul {
namespace {

constexpr VariantInfo info{
    .name = "packed_split_k",
    .technique = Technique::openmp,
    .builds_on = "packed",
    .adds = "K divided among OpenMP threads: each reads rows of B, those that it updates in a step",
    .idea = Idea::threads,
    .isa = build_isa,
    .threaded = true,
    .epilogue = true,
};

const Registration registration{info, make_plan<Matmul, PackedGrid<false, false, true>>};

}  // namespace
}  // namespace stepladder::matmul
