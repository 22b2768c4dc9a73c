// The order in which tiles of C are taken. Blocks that run side by side take neighbours in it; the
// fewer rows and columns of tiles those have, the fewer strips of the factors they read, and the
// more of them the second-level cache gives instead of the memory.
//
//     in bands of 16 rows of tiles, down before across:    0 16 32 …
//                                                          1 17 33 …
//                                                          …
#pragma once

#include "kernels/common/host_device.hpp"

namespace stepladder::matmul {

struct Raster {
  unsigned down, across;  // rows and columns of tiles

  struct Place {
    unsigned row, column;
  };

  STEPLADDER_HOST_DEVICE unsigned count() const { return down * across; }
  STEPLADDER_HOST_DEVICE Place place(unsigned tile) const {
    constexpr unsigned band = 16;
    const unsigned first_row = tile / (band * across) * band, rest = tile % (band * across);
    const unsigned rows = down - first_row < band ? down - first_row : band;
    return {first_row + rest % rows, rest / rows};
  }
};

}  // namespace stepladder::matmul
