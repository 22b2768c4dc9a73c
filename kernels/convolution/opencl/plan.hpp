// The plan of an OpenCL rung in NCHW.
#pragma once

#include <array>
#include <string>

#include "kernels/common/opencl/register_tile.hpp"
#include "kernels/convolution/convolution.hpp"

namespace stepladder::convolution {

struct OpenClLaunch {
  opencl::Range groups, items;
  std::string options{};  // macros of the kernel
};

// Of work-items 0 … count - 1 and a few more.
OpenClLaunch launch_over_items(std::int64_t count);

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
             const OpenClLaunch& launch, std::string remark = {});
  void run(const Operands& operands) override;
  std::string remark() const override { return remark_; }

 private:
  std::string remark_;
  std::array<cl_int, 15> geometry_;  // Geometry of geometry.cl
  const opencl::Session& session_;
  opencl::Kernel kernel_;
  opencl::Range groups_, items_;
  opencl::Operand x_, w_, y_;
};

}  // namespace stepladder::convolution
