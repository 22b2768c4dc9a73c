// forward and backward_data in two phases: the threads first divide the weights, which they pack or
// transform, and then the target.
#pragma once

#include <cstdint>

#include "kernels/convolution/axis.hpp"
#include "kernels/convolution/cpu/threaded_convolution.hpp"

namespace stepladder::convolution {

class ThreadedCorrelation : public ThreadedConvolution {
 public:
  // Not inline: files of several ISAs would each have a copy.
  ~ThreadedCorrelation() override;
  void run_phase(int phase, int thread, const Operands& operands) override;

 protected:
  ThreadedCorrelation(const Problem& problem, int threads);
  // One thread's part of the weights, or of the target, of all groups.
  virtual void pack(int thread, const float* weights) = 0;
  virtual void correlate(int thread, const float* source, float* target) = 0;

  Problem p_;
  int threads_;
  bool forward_;
  Correlations correlations_;
  std::int64_t source_channels_, target_channels_;  // of one group
};

}  // namespace stepladder::convolution
