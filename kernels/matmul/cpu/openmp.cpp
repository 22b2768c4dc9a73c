// Many cores: the rows of C, or its columns where there are few rows, are divided among the OpenMP
// threads, and each thread runs the loops of `simd` on its part. Threads share only the operands,
// so they synchronize only at the end.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/matmul/cpu/simd_block.hpp"

namespace stepladder::matmul {
namespace {

class OpenMp final : public Plan {
 public:
  OpenMp(const Problem& problem, const Resources& resources)
      : parts_(problem, resources.threads), threads_(resources.threads) {}

  void run(const Operands& operands) override {
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
    for (int thread = 0; thread < threads_; ++thread) parts_.compute(operands, thread);
  }

 private:
  SimdParts parts_;
  int threads_;
};

constexpr VariantInfo info{
    .name = "openmp",
    .technique = Technique::openmp,
    .builds_on = "simd",
    .adds = "rows or columns of C divided among OpenMP threads",
    .idea = Idea::threads,
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<Matmul, OpenMp>};

}  // namespace
}  // namespace stepladder::matmul
