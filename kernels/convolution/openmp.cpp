// simd on a team of OpenMP threads. forward and backward_data share the pixels of the batch, so
// every thread has results of its own; backward_weights sums over the pixels, so the threads keep
// partial sums and add them at the end. Threads wait for each other twice.
#include <omp.h>

#include "kernels/common/simd.hpp"
#include "kernels/convolution/tiled.hpp"

namespace stepladder::convolution {
namespace {

class OpenMp final : public Plan {
 public:
  OpenMp(const Problem& problem, const Resources& resources)
      : threads_(resources.threads), steps_(make_steps<Arch>(problem, threads_)) {}

  void run(const Operands& operands) override {
    for (int step = 0; step < Steps::count; ++step) {
      // A share per iteration, not per thread: right even when the team is smaller than asked for.
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
      for (int thread = 0; thread < threads_; ++thread) steps_->step(step, thread, operands);
    }
  }

 private:
  int threads_;
  std::unique_ptr<Steps> steps_;
};

constexpr VariantInfo info{
    .name = "openmp",
    .technique = Technique::openmp,
    .builds_on = "simd",
    .adds = "the pixels of the batch shared by a team of threads",
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<Convolution, OpenMp>};

}  // namespace
}  // namespace stepladder::convolution
