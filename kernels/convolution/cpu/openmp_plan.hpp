// A team of OpenMP threads that takes the steps of a convolution, and waits at the end of each.
#pragma once

#include <memory>

#include "kernels/convolution/cpu/steps.hpp"

namespace stepladder::convolution {

class OpenMpPlan final : public Plan {
 public:
  OpenMpPlan(std::unique_ptr<Steps> steps, int threads);
  void run(const Operands& operands) override;

 private:
  std::unique_ptr<Steps> steps_;
  int threads_;
};

}  // namespace stepladder::convolution
