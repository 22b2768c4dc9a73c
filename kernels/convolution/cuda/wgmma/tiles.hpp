// How the products of tf32_wgmma are cut into tiles of 128 rows, and these handed to blocks that stay.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "kernels/common/host_device.hpp"
#include "kernels/convolution/cuda/correlation.hpp"

namespace stepladder::convolution {

inline constexpr int wgmma_rows = 128, wgmma_depth = 32;  // of a tile, of a step along the sum
inline constexpr int piece_channels = 4;                  // fetched at once

// What is multiplied in each group: a result of rows x columns, its sums over `depth`.
struct WgmmaSize {
  std::int64_t rows;
  int columns, groups;
  std::int64_t depth;
};

// Terms of a sum over taps and channels, with those that fill a tap's last piece.
inline std::int64_t padded_terms(const Correlation& c) {
  const int pieces = (c.source_channels + piece_channels - 1) / piece_channels;
  return std::int64_t{c.taps()} * pieces * piece_channels;
}

// forward and backward_data.
inline WgmmaSize pixel_product_size(const Correlation& c) {
  return {c.pixels(), c.target_channels, c.groups, padded_terms(c)};
}

// backward_weights, from the correlation of the forward direction.
inline WgmmaSize term_product_size(const Correlation& forward) {
  return {padded_terms(forward), forward.target_channels, forward.groups, forward.pixels()};
}

// One product for each group, its sum in parts that have results of their own. Columns come first: blocks that
// run side by side read the same pixels.
struct WgmmaTiles {
  int rows, columns, groups, parts;
  int steps;  // of the whole sum

  struct Place {
    int row, column, group, part;
    int first_step, last_step;  // of the part; the second is the next one's first
  };

  STEPLADDER_HOST_DEVICE unsigned count() const {
    return static_cast<unsigned>(rows) * columns * groups * parts;
  }
  STEPLADDER_HOST_DEVICE Place place(unsigned tile) const {
    const auto take = [&](int size) {
      const unsigned index = tile % size;
      tile /= size;
      return static_cast<int>(index);
    };
    Place p{};
    p.column = take(columns);
    p.row = take(rows);
    p.group = take(groups);
    p.part = take(parts);
    p.first_step = static_cast<int>(std::int64_t{steps} * p.part / parts);
    p.last_step = static_cast<int>(std::int64_t{steps} * (p.part + 1) / parts);
    return p;
  }
};

inline std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// What `blocks` blocks take for all tiles, in units that compare: rounds, times the steps of a tile, times what
// a step brings from the second-level cache, which is slower than the products. A tile's end, where its sums are
// stored, costs some steps more, and as many again where parts are then read and added.
inline std::int64_t time(const WgmmaTiles& tiles, int tile_columns, int blocks) {
  const int end = tiles.parts == 1 ? 4 : 8;
  return divide_up(tiles.count(), blocks) * (divide_up(tiles.steps, tiles.parts) + end) *
         (wgmma_rows + tile_columns);
}

// The sum in as many parts as take the least time.
inline WgmmaTiles split(WgmmaTiles tiles, int tile_columns, int blocks) {
  constexpr int rounds = 4;
  tiles.parts = 1;
  const int most = std::min<int>(tiles.steps, rounds * blocks / tiles.count());
  WgmmaTiles best = tiles;
  for (tiles.parts = 2; tiles.parts <= most; ++tiles.parts)
    if (time(tiles, tile_columns, blocks) < time(best, tile_columns, blocks)) best = tiles;
  return best;
}

// How a result is cut, and the columns of a tile.
struct WgmmaCut {
  WgmmaTiles tiles;
  int columns;
};

// Tiles of that of the widths which takes the least time, the first of equals; with the sum in parts if that
// is asked for.
inline WgmmaCut cut(const WgmmaSize& size, bool in_parts, std::span<const int> widths, int blocks) {
  WgmmaCut best{};
  auto least = std::numeric_limits<std::int64_t>::max();
  for (const int width : widths) {
    WgmmaTiles tiles{static_cast<int>(divide_up(size.rows, wgmma_rows)),
                     static_cast<int>(divide_up(size.columns, width)), size.groups, 1,
                     static_cast<int>(divide_up(size.depth, wgmma_depth))};
    if (in_parts) tiles = split(tiles, width, blocks);
    if (time(tiles, width, blocks) >= least) continue;
    least = time(tiles, width, blocks);
    best = {tiles, width};
  }
  return best;
}

}  // namespace stepladder::convolution
