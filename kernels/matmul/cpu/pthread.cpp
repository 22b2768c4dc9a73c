// The same division as `openmp`, on our own thread pool (kernels/common/cpu/thread_pool.hpp). The
// threads are created with the plan; between runs they spin for some microseconds, then sleep. It
// shows what OpenMP does underneath, and what its fork and join cost on small problems.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/common/cpu/thread_pool.hpp"
#include "kernels/matmul/cpu/simd_block.hpp"

namespace stepladder::matmul {
namespace {

class Pthread final : public Plan {
 public:
  Pthread(const Problem& problem, const Resources& resources)
      : problem_(problem),
        threads_(resources.threads),
        workspace_size_(SimdBlock::workspace(problem)),
        workspace_(aligned_array<float>(workspace_size_ * threads_)),
        pool_(threads_) {}

  void run(const Operands& operands) override {
    pool_.run([&](int thread) {
      const Problem& p = problem_;
      Range rows{0, p.m}, columns{0, p.n};
      if (p.n > p.m)
        columns = partition(p.n, threads_, thread, line_floats);  // no cache line of C is shared
      else
        rows = partition(p.m, threads_, thread);
      SimdBlock::multiply(p, operands, rows, columns, workspace_.get() + thread * workspace_size_);
    });
  }

 private:
  Problem problem_;
  int threads_;
  std::int64_t workspace_size_;    // floats per thread
  AlignedArray<float> workspace_;  // [threads, workspace_size]
  ThreadPool pool_;                // last, so its threads end before the rest is destroyed
};

constexpr VariantInfo info{
    .name = "pthread",
    .technique = Technique::pthread,
    .builds_on = "simd",
    .adds = "the division of openmp, on a thread pool that the plan keeps",
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<Matmul, Pthread>};

}  // namespace
}  // namespace stepladder::matmul
