// The plan of an OpenCL rung: its kernel `multiply` on work-groups that each compute a tile of C.
#pragma once

#include <string>

#include "kernels/common/opencl/register_tile.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {

struct OpenClTile {
  opencl::Range elements;   // of C, of a work-group
  opencl::Range items;      // work-items of a work-group
  std::string options{};    // macros of the kernel
  bool rows_first = false;  // of work-groups: group (0, 1) is the second tile of columns
};

std::string options_of(const Problem& problem, const std::string& of_tile);  // of all kernels

// Throws Unsupported for operands that kernels cannot index.
const opencl::Session& session_for(const Problem& problem, int threads);

// Of opencl_register.cl.
OpenClTile tile_of(const opencl::RegisterTile& sizes);

class OpenClPlan : public Plan {
 public:
  // `source` has a kernel multiply(int m, int n, int k, A, B, C) and may use elements.cl and
  // register_tile.cl.
  OpenClPlan(const Problem& problem, const Resources& resources, const char* source,
             const OpenClTile& tile, std::string remark = {});
  void run(const Operands& operands) override;
  std::string remark() const override { return remark_; }

 private:
  Problem p_;
  std::string remark_;
  const opencl::Session& session_;
  opencl::Kernel kernel_;
  opencl::Range groups_, items_;
  opencl::Operand a_, b_, c_;
};

}  // namespace stepladder::matmul
