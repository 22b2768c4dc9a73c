// The sizes of kernels of item_tile.cl, from the registers of the device.
#pragma once

#include <string>

#include "kernels/matmul/opencl/plan.hpp"

namespace stepladder::matmul {

struct ItemTile {
  int rows, width, vectors;  // vectors of `width` floats in a row

  opencl::Range elements() const;
  std::string options() const;  // the macros of item_tile.cl
  std::string name() const;     // "tiles of 8x48"
};

// 24 accumulators of 16 floats where the device has such vectors; otherwise 12 of 8 or 4.
ItemTile item_tile_for(const opencl::Session& session);

}  // namespace stepladder::matmul
