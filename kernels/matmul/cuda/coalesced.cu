// naive with neighbouring threads on neighbouring columns. A warp then reads 32 adjacent floats of
// an untransposed B and writes 32 adjacent floats of C: four 32-byte sectors instead of 32 (CUDA
// C++ Best Practices Guide, "Coalesced Access to Global Memory"). All its threads read the same
// element of A. Expected gain: 4 to 10 for nn. Nothing is gained where B is transposed: its rows
// are read with a stride as before.
//
//           j →
//     C    0   1    …  n-1     index of the thread that computes C[i, j]
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
    .adds = "coalesced access: neighbouring threads take neighbouring columns",
    .idea = Idea::coalescing,
    .place = Place::cuda,
};

const Registration registration{info, make_cuda_plan<Matmul, multiply>};

}  // namespace
}  // namespace stepladder::matmul
