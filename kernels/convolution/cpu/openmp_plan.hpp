// Runs a ThreadedConvolution on a team of OpenMP threads.
#pragma once

#include <memory>

#include "kernels/convolution/cpu/threaded_convolution.hpp"

namespace stepladder::convolution {

class OpenMpPlan final : public Plan {
 public:
  OpenMpPlan(std::unique_ptr<ThreadedConvolution> convolution, int threads);
  void run(const Operands& operands) override;

 private:
  std::unique_ptr<ThreadedConvolution> convolution_;
  int threads_;
};

}  // namespace stepladder::convolution
