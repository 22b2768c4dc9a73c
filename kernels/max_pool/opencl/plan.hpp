// The plan of an OpenCL rung: its kernel on a number of work-items, in NCHW.
#pragma once

#include "kernels/common/opencl/plan.hpp"
#include "kernels/max_pool/max_pool.hpp"

namespace stepladder::max_pool {

struct OpenClGeometry {  // the same as Geometry of geometry.cl
  explicit OpenClGeometry(const Problem& problem);
  cl_int planes, height, width, out_height, out_width;
  cl_int window_h, window_w, stride_h, stride_w, pad_h, pad_w;
};

class OpenClPlan : public Plan {
 public:
  // `source` has a kernel called as the direction, forward(Geometry g, x, y, argmax), which the
  // work-items 0 … items - 1 and a few more call, and may use geometry.cl.
  OpenClPlan(const Problem& problem, const Resources& resources, const char* source,
             std::int64_t items);
  void run(const Operands& operands) override;

 private:
  OpenClGeometry geometry_;
  const opencl::Session& session_;
  opencl::Kernel kernel_;
  opencl::Range groups_;
  opencl::Operand x_, y_, argmax_;
};

}  // namespace stepladder::max_pool
