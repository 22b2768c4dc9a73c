// Threadblock rasterization: the order in which blocks take the tiles of C. Blocks that run at the
// same time take consecutive tiles. The fewer rows and columns of tiles those span, the fewer
// strips of the operands they read, and the more of the reads hit in L2.
//
//     bands of 16 rows of tiles, column by column:    0 16 32 …
//                                                     1 17 33 …
//                                                     …
#pragma once

#include "kernels/common/host_device.hpp"

namespace stepladder::matmul {

struct Raster {
  unsigned down, across;  // rows and columns of tiles

  struct Position {
    unsigned row, column;
  };

  STEPLADDER_HOST_DEVICE unsigned count() const { return down * across; }
  STEPLADDER_HOST_DEVICE Position position(unsigned tile) const {
    constexpr unsigned band = 16;
    const unsigned first_row = tile / (band * across) * band, rest = tile % (band * across);
    const unsigned rows = down - first_row < band ? down - first_row : band;
    return {first_row + rest % rows, rest / rows};
  }
};

}  // namespace stepladder::matmul
