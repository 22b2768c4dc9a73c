// A convolution that a team of threads computes in phases, with a barrier between them.
#pragma once

#include "kernels/convolution/convolution.hpp"

namespace stepladder::convolution {

class ThreadedConvolution {
 public:
  explicit ThreadedConvolution(int phases = 2) : phases_(phases) {}
  virtual ~ThreadedConvolution() = default;
  int phases() const { return phases_; }
  // Every thread of the team calls run_phase(0, …). When all have returned, every thread calls
  // run_phase(1, …), and so on.
  virtual void run_phase(int phase, int thread, const Operands& operands) = 0;

 private:
  int phases_;
};

}  // namespace stepladder::convolution
