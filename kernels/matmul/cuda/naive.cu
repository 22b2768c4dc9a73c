// The definition on the GPU: one thread per element of C. Neighbouring threads take neighbouring
// rows, so a warp reads an untransposed A from 32 rows and writes C to 32 rows: one memory
// transaction per float. The next rung removes that cost.
//
//           j →
//     C    0   m     …     index of the thread that computes C[i, j]
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
    .adds = "the definition on the GPU, one thread per element of C",
    .place = Place::cuda,
};

const Registration registration{info, make_cuda_plan<Matmul, multiply>};

}  // namespace
}  // namespace stepladder::matmul
