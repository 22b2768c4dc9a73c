#include "kernels/convolution/cpu/threaded_correlation.hpp"

#include <algorithm>

#include "kernels/common/cpu/partition.hpp"

namespace stepladder::convolution {

ThreadedCorrelation::ThreadedCorrelation(const Problem& problem, int threads)
    : p_(problem),
      threads_(threads),
      forward_(problem.direction == Direction::forward),
      correlations_(correlations_of(problem)),
      source_channels_(correlations_.source_channels),
      target_channels_(correlations_.target_channels) {}

ThreadedCorrelation::~ThreadedCorrelation() = default;

void ThreadedCorrelation::run_phase(int phase, int thread, const Operands& operands) {
  const float* source = forward_ ? operands.x : operands.y;
  float* target = forward_ ? operands.y : operands.x;
  if (phase == 1) return correlate(thread, source, target);
  pack(thread, operands.w);
  if (!correlations_.untouched_pixels) return;
  const Range part = partition(p_.x_count(), threads_, thread);
  std::fill(target + part.begin, target + part.end, 0.0F);
}

}  // namespace stepladder::convolution
