// The plan of an OpenCL rung: its kernel `update` over all weights.
#pragma once

#include "kernels/common/opencl/plan.hpp"
#include "kernels/sgd_update/sgd_update.hpp"

namespace stepladder::sgd_update {

class OpenClPlan : public Plan {
 public:
  // `source` has a kernel update(int count, Constants c, weights, gradient, state1, state2), a
  // work-item of which updates `lanes` weights, and may use rules.cl, with `number` as NUMBER.
  OpenClPlan(const Problem& problem, const Resources& resources, const char* source, int lanes,
             const char* number);
  void run(const Operands& operands) override;

 private:
  Problem p_;
  const opencl::Session& session_;
  opencl::Kernel kernel_;
  opencl::Range groups_;
  opencl::Operand weights_, gradient_, state1_, state2_;
};

}  // namespace stepladder::sgd_update
