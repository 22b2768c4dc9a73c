// The tiles of C, one for each block. Only .cu files include this.
#pragma once

#include "kernels/common/cuda/launch.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {

// The grid has one dimension, row-major over the tiles: grid.y is limited to 65535.
template <int tile_rows, int tile_columns>
unsigned tile_count(const Problem& p) {
  return grid_x(ceil_div(p.m, tile_rows) * ceil_div(p.n, tile_columns));
}

// The first element of C of a tile.
struct TileOrigin {
  std::int64_t row, column;
};

template <int tile_rows, int tile_columns>
__device__ TileOrigin tile_origin(const Problem& p, unsigned tile) {
  const auto across = static_cast<unsigned>(ceil_div(p.n, tile_columns));
  return {std::int64_t{tile / across} * tile_rows, std::int64_t{tile % across} * tile_columns};
}

}  // namespace stepladder::matmul
