// The sizes of kernels with a register tile (register_tile.cl), and the fastest of a short list.
#pragma once

#include <functional>
#include <string>

#include "kernels/common/opencl/plan.hpp"

namespace stepladder::opencl {

struct RegisterTile {
  int local_x, local_y;  // work-items of a work-group
  int rows, width;       // of the result, of a work-item
  int step;              // along K

  Range items() const;
  Range elements() const;       // of the result, of a work-group
  std::string options() const;  // the macros of register_tile.cl
  std::string name() const;     // "8x4 work-items of 8x16, K in steps of 64"
};

// Suits a GPU: 256 work-items, a tile of 64 x 64.
inline constexpr RegisterTile gpu_tile{
    .local_x = 16, .local_y = 16, .rows = 4, .width = 4, .step = 16};

// Of a short list, that with which the device is fastest: times each in the first call of a process
// for `kernel` and `threads`. plan(tile) returns what runs a problem of moderate size once. Throws
// Unsupported if the device runs none of them.
const RegisterTile& fastest_tile(
    const std::string& kernel, int threads,
    const std::function<std::function<void()>(const RegisterTile&)>& plan);

}  // namespace stepladder::opencl
