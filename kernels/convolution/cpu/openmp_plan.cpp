#include "kernels/convolution/cpu/openmp_plan.hpp"

#include <utility>

namespace stepladder::convolution {

OpenMpPlan::OpenMpPlan(std::unique_ptr<Steps> steps, int threads)
    : steps_(std::move(steps)), threads_(threads) {}

void OpenMpPlan::run(const Operands& operands) {
  for (int step = 0; step < Steps::count; ++step) {
    // A share per iteration, not per thread: right even when the team is smaller than asked for.
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
    for (int thread = 0; thread < threads_; ++thread) steps_->step(step, thread, operands);
  }
}

}  // namespace stepladder::convolution
