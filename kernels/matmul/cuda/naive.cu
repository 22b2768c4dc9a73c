// The definition on the GPU: one thread per element of C, thousands at once. Neighbouring threads
// take neighbouring rows, so the 32 of a warp read an untransposed A from 32 rows and write C to 32
// rows, a memory transaction for each float: the cost that the next rung takes away.
//
//           j →
//     C    0   m     …     the number of the thread that computes C[i, j]
//    i ↓   1   m+1   …
//          2   m+2   …
#include "kernels/common/cuda/plan.hpp"
#include "kernels/matmul/cuda/element.hpp"

namespace stepladder::matmul {
namespace {

__global__ void multiply_kernel(Problem p, Operands o) {
  const std::int64_t t = thread_index();
  if (t >= p.m * p.n) return;
  const std::int64_t i = t % p.m, j = t / p.m;
  o.c[i * p.n + j] = element(p, o, i, j);
}

void multiply(const Problem& p, const Operands& o) {
  launch(multiply_kernel, {blocks_for(p.m * p.n), block_threads}, p, o);
}

constexpr VariantInfo info{
    .name = "naive",
    .technique = Technique::cuda,
    .adds = "the definition on the GPU: one thread per element of C",
    .place = Place::cuda,
};

const Registration registration{info, make_cuda_plan<Matmul, multiply>};

}  // namespace
}  // namespace stepladder::matmul
