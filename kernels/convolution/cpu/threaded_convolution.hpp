// A convolution that a team of threads computes in two phases, with a barrier between them.
#pragma once

#include "kernels/convolution/convolution.hpp"

namespace stepladder::convolution {

class ThreadedConvolution {
 public:
  static constexpr int phases = 2;
  virtual ~ThreadedConvolution() = default;
  // Every thread of the team calls run_phase(0, …). When all have returned, every thread calls
  // run_phase(1, …).
  virtual void run_phase(int phase, int thread, const Operands& operands) = 0;
};

}  // namespace stepladder::convolution
