// How the GEMMs of tf32_wgmma are divided into tiles of 128 rows and split-K slices, which
// persistent blocks process.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "kernels/common/host_device.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cuda/correlation.hpp"

namespace stepladder::convolution {

inline constexpr int wgmma_tile_m = 128, wgmma_tile_k = 32;  // tile_k: K of a step
inline constexpr int chunk_channels = 4;                     // channels of a 16-byte chunk

// One GEMM per group, m x n x k each.
struct GemmSize {
  std::int64_t m;
  int n, groups;
  std::int64_t k;
};

// CRS (channels x filter rows x filter columns), with channels padded to whole chunks.
inline std::int64_t padded_crs(const CudaCorrelation& c) {
  const int chunks = ceil_div(c.source_channels, chunk_channels);
  return std::int64_t{c.taps()} * chunks * chunk_channels;
}

inline GemmSize correlation_gemm_size(const CudaCorrelation& c) {
  return {c.pixels(), c.target_channels, c.groups, padded_crs(c)};
}

// From the correlation of the forward direction.
inline GemmSize backward_weights_gemm_size(const CudaCorrelation& forward) {
  return {padded_crs(forward), forward.target_channels, forward.groups, forward.pixels()};
}

// The tiles of all groups and split-K slices. Columns are the fastest index: concurrent blocks read
// the same pixels.
struct WgmmaTiles {
  int rows, columns, groups, splits;  // rows and columns of tiles
  int steps;                          // K steps of all slices

  struct Position {
    int row, column, group, split;
    int first_step, last_step;  // [first_step, last_step)
  };

  STEPLADDER_HOST_DEVICE unsigned count() const {
    return static_cast<unsigned>(rows) * columns * groups * splits;
  }
  STEPLADDER_HOST_DEVICE Position position(unsigned tile) const {
    const auto take = [&](int size) {
      const unsigned index = tile % size;
      tile /= size;
      return static_cast<int>(index);
    };
    Position p{};
    p.column = take(columns);
    p.row = take(rows);
    p.group = take(groups);
    p.split = take(splits);
    p.first_step = static_cast<int>(std::int64_t{steps} * p.split / splits);
    p.last_step = static_cast<int>(std::int64_t{steps} * (p.split + 1) / splits);
    return p;
  }
};

// Estimated time of all tiles on `blocks` blocks, in relative units: waves, times the K steps of a
// tile, times the loads of a step from L2, which is slower than the products. The epilogue of a
// tile counts as 4 steps, with split-K as 8, because the partials are read and added.
inline std::int64_t estimated_time(const WgmmaTiles& tiles, int tile_columns, int blocks) {
  const int epilogue = tiles.splits == 1 ? 4 : 8;
  return ceil_div<std::int64_t>(tiles.count(), blocks) *
         (ceil_div(tiles.steps, tiles.splits) + epilogue) * (wgmma_tile_m + tile_columns);
}

// The number of split-K slices of least estimated time, with at most 4 waves of tiles.
inline WgmmaTiles choose_splits(WgmmaTiles tiles, int tile_columns, int blocks) {
  constexpr int max_waves = 4;
  tiles.splits = 1;
  const int max_splits = std::min<int>(tiles.steps, max_waves * blocks / tiles.count());
  WgmmaTiles best = tiles;
  for (tiles.splits = 2; tiles.splits <= max_splits; ++tiles.splits)
    if (estimated_time(tiles, tile_columns, blocks) < estimated_time(best, tile_columns, blocks))
      best = tiles;
  return best;
}

struct WgmmaTiling {
  WgmmaTiles tiles;
  int columns;  // of a tile
};

// The tile width of least estimated time, the first of equals, with split-K if `may_split`.
inline WgmmaTiling choose_tiling(const GemmSize& size, bool may_split, std::span<const int> widths,
                                 int blocks) {
  WgmmaTiling best{};
  auto least = std::numeric_limits<std::int64_t>::max();
  for (const int width : widths) {
    WgmmaTiles tiles{static_cast<int>(ceil_div(size.m, wgmma_tile_m)),
                     static_cast<int>(ceil_div(size.n, width)), size.groups, 1,
                     static_cast<int>(ceil_div(size.k, wgmma_tile_k))};
    if (may_split) tiles = choose_splits(tiles, width, blocks);
    const std::int64_t time = estimated_time(tiles, width, blocks);
    if (time >= least) continue;
    least = time;
    best = {tiles, width};
  }
  return best;
}

}  // namespace stepladder::convolution
