// Many cores: the longer side of C is split into one share per OpenMP thread; a thread computes its
// share with simd's loops. Nothing is shared but the operands, so there is nothing to wait for but
// the end. Splitting columns when C is wide means that the threads read B once between them.
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
        columns = part_of(p.n, 16, thread, threads_);  // 16 floats: no cache line of C is shared
      else
        rows = part_of(p.m, 1, thread, threads_);
      SimdBlock::multiply(p, operands, rows, columns,
                                workspace_.get() + thread * workspace_size_);
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
    .adds = "rows or columns of C split over OpenMP threads",
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<Matmul, OpenMp>};

}  // namespace
}  // namespace stepladder::matmul
