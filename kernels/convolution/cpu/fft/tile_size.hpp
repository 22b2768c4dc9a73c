// The size of the tiles of `fft`, and the problems that it supports.
#pragma once

#include <cstdint>
#include <utility>

#include "kernels/convolution/convolution.hpp"

namespace stepladder::convolution {

// Rows and columns of a tile, chosen independently among Sizes.
struct FftTile {
  using Sizes = std::integer_sequence<int, 8, 16, 24, 32, 48, 64>;
  static constexpr std::int64_t most = 64;
  std::int64_t rows, columns;
};

// The tile of least estimated time. Throws Unsupported if the stride is not 1 or the filter is
// larger than any tile.
FftTile fft_tile(const Problem& problem);

}  // namespace stepladder::convolution
