// naive with its threads counted the other way: neighbouring threads take neighbouring columns. The
// 32 of a warp then read 32 neighbours of an untransposed B and write 32 neighbours of C, which the
// memory serves in four 32-byte sectors instead of 32 (CUDA C++ Best Practices Guide, "Coalesced
// Access to Global Memory"), and read one element of A, the same for all. Expected gain for nn: 4
// to 10. Where B is transposed the threads stride over its rows as before, and nothing is gained.
//
//           j →
//     C    0   1    …  n-1     the number of the thread that computes C[i, j]
//    i ↓   n   n+1  …
#include "kernels/common/cuda/plan.hpp"
#include "kernels/matmul/cuda/element.hpp"

namespace stepladder::matmul {
namespace {

__global__ void multiply_kernel(Problem p, Operands o) {
  const std::int64_t t = thread_index();
  if (t >= p.m * p.n) return;
  const std::int64_t i = t / p.n, j = t % p.n;
  o.c[i * p.n + j] = element(p, o, i, j);
}

void multiply(const Problem& p, const Operands& o) {
  launch(multiply_kernel, {blocks_for(p.m * p.n), block_threads}, p, o);
}

constexpr VariantInfo info{
    .name = "coalesced",
    .technique = Technique::cuda,
    .builds_on = "naive",
    .adds = "neighbouring threads take neighbouring columns",
    .place = Place::cuda,
};

const Registration registration{info, make_cuda_plan<Matmul, multiply>};

}  // namespace
}  // namespace stepladder::matmul
