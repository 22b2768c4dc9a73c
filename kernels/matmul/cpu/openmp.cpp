// Many cores: the longer side of C is divided among the OpenMP threads, and each thread runs the
// loops of `simd` on its part. Threads share only the operands, so they synchronize only at the
// end. When C is wide its columns are divided: then each part of B is read by one thread only.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/matmul/cpu/simd_block.hpp"

namespace stepladder::matmul {
namespace {

class OpenMp final : public Plan {
 public:
  OpenMp(const Problem& problem, const Resources& resources)
      : problem_(problem),
        threads_(resources.threads),
        workspace_size_(SimdBlock::workspace(problem)),
        workspace_(aligned_array<float>(workspace_size_ * threads_)) {}

  void run(const Operands& operands) override {
    const Problem& p = problem_;
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
    for (int thread = 0; thread < threads_; ++thread) {
      Range rows{0, p.m}, columns{0, p.n};
      if (p.n > p.m)
        columns = partition(p.n, threads_, thread, line_floats);  // no cache line of C is shared
      else
        rows = partition(p.m, threads_, thread);
      SimdBlock::multiply(p, operands, rows, columns, workspace_.get() + thread * workspace_size_);
    }
  }

 private:
  Problem problem_;
  int threads_;
  std::int64_t workspace_size_;    // floats per thread
  AlignedArray<float> workspace_;  // [threads, workspace_size]
};

constexpr VariantInfo info{
    .name = "openmp",
    .technique = Technique::openmp,
    .builds_on = "simd",
    .adds = "rows or columns of C divided among OpenMP threads",
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<Matmul, OpenMp>};

}  // namespace
}  // namespace stepladder::matmul
