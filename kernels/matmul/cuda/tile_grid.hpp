// C cut into tiles, one for each block of threads. Only .cu files include this.
#pragma once

#include "kernels/common/cuda/launch.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {

// The blocks are numbered along the rows of tiles, in one dimension: the second ends at 65535.
template <int tile_rows, int tile_columns>
unsigned tiles_of(const Problem& p) {
  return blocks_for(p.m, tile_rows) * blocks_for(p.n, tile_columns);
}

struct Corner {
  std::int64_t row, column;
};

template <int tile_rows, int tile_columns>
__device__ Corner tile_start(const Problem& p, unsigned tile) {
  const auto across = static_cast<unsigned>((p.n + tile_columns - 1) / tile_columns);
  return {std::int64_t{tile / across} * tile_rows, std::int64_t{tile % across} * tile_columns};
}

}  // namespace stepladder::matmul
