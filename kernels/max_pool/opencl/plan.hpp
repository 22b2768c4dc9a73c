// The plan of an OpenCL rung: its kernel on a number of work-items, in NCHW.
#pragma once

#include <array>

#include "kernels/common/opencl/plan.hpp"
#include "kernels/max_pool/max_pool.hpp"

namespace stepladder::max_pool {

class OpenClPlan : public Plan {
 public:
  // `source` has a kernel called as the direction, forward(Geometry g, x, y, argmax), which the
  // work-items 0 … items - 1 and a few more call, and may use geometry.cl.
  OpenClPlan(const Problem& problem, const Resources& resources, const char* source,
             std::int64_t items);
  void run(const Operands& operands) override;

 private:
  std::array<cl_int, 11> geometry_;  // Geometry of geometry.cl
  const opencl::Session& session_;
  opencl::Kernel kernel_;
  opencl::Range groups_;
  opencl::Operand x_, y_, argmax_;
};

}  // namespace stepladder::max_pool
