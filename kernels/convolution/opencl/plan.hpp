// The plan of an OpenCL rung in NCHW.
#pragma once

#include <string>

#include "kernels/common/opencl/register_tile.hpp"
#include "kernels/convolution/convolution.hpp"

namespace stepladder::convolution {

struct OpenClGeometry {  // the same as Geometry of geometry.cl
  explicit OpenClGeometry(const Problem& problem);
  cl_int batch, channels, height, width;
  cl_int out_channels, out_height, out_width;
  cl_int kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
  cl_int group_in, group_out;
};

struct OpenClLaunch {
  opencl::Range groups, items;
  std::string options{};  // macros of the kernel
};

// Of work-groups of `items` that each compute `elements` of y as a matrix per group of channels:
// rows are output channels, columns the pixels of all images. Row `r` of the work-groups has the
// tile of rows r % tiles of group r / tiles; tiles: work-groups along the rows of one group.
OpenClLaunch launch_over_matrix(const Problem& problem, opencl::Range elements, opencl::Range items,
                                const std::string& options);
// Of opencl_register.cl.
OpenClLaunch launch_of(const Problem& problem, const opencl::RegisterTile& sizes);

// Throws Unsupported.
void require_forward(const Problem& problem);

class OpenClPlan : public Plan {
 public:
  // `source` has a kernel called as the direction, forward(Geometry g, x, w, y), and may use
  // geometry.cl and register_tile.cl.
  OpenClPlan(const Problem& problem, const Resources& resources, const char* source,
             const OpenClLaunch& launch);
  void run(const Operands& operands) override;

 private:
  OpenClGeometry geometry_;
  const opencl::Session& session_;
  opencl::Kernel kernel_;
  opencl::Range groups_, items_;
  opencl::Operand x_, w_, y_;
};

}  // namespace stepladder::convolution
