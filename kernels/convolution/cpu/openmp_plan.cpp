#include "kernels/convolution/cpu/openmp_plan.hpp"

#include <utility>

namespace stepladder::convolution {

OpenMpPlan::OpenMpPlan(std::unique_ptr<ThreadedConvolution> convolution, int threads)
    : convolution_(std::move(convolution)), threads_(threads) {}

void OpenMpPlan::run(const Operands& operands) {
  for (int phase = 0; phase < convolution_->phases(); ++phase) {
    // One part per iteration, not per thread: correct even if OpenMP grants fewer threads.
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
    for (int thread = 0; thread < threads_; ++thread)
      convolution_->run_phase(phase, thread, operands);
  }
}

}  // namespace stepladder::convolution
