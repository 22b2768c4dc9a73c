// Where shared memory that the TMA wrote with its 128-byte swizzle keeps an element. In every 8 rows of
// 128 bytes the 16-byte chunks of a row change places, by the row's number, so that neither 8 chunks
// below each other nor 8 in a row share banks (PTX ISA, "Swizzling modes"):
//
//     row 0    0 1 2 3 4 5 6 7
//     row 1    1 0 3 2 5 4 7 6
//     row 2    2 3 0 1 6 7 4 5   …
#pragma once

#include <cstdint>

#include "kernels/common/host_device.hpp"

namespace stepladder {

inline constexpr int swizzled_row = 32;  // floats: 128 bytes

// In floats from the start of the rows, which is a multiple of 1024 bytes.
STEPLADDER_HOST_DEVICE constexpr int swizzled(int row, int column) {
  const int chunk = (column / 4) ^ (row % 8);
  return row * swizzled_row + chunk * 4 + column % 4;
}

// How wgmma is told of such rows that begin at this shared address (PTX ISA, "Matrix Descriptor
// Format"): the swizzle's mode, and that 8 rows further on are 1024 bytes further on. (The distance
// along the depth is not used with a swizzle.)
STEPLADDER_HOST_DEVICE constexpr std::uint64_t swizzled_matrix(std::uint32_t address) {
  constexpr std::uint64_t swizzle_128_bytes = 1, eight_rows = 1024;
  return swizzle_128_bytes << 62 | (eight_rows >> 4) << 32 | (address & 0x3ffffU) >> 4;
}

// The same from another row, a multiple of 8, and another column on.
STEPLADDER_HOST_DEVICE constexpr std::uint64_t swizzled_part(std::uint64_t matrix, int row,
                                                             int column) {
  return matrix + static_cast<std::uint64_t>(row * 128 + column * 4) / 16;
}

}  // namespace stepladder
