// The layout of shared memory that the TMA writes with its 128-byte swizzle. A row is eight 16-byte
// chunks, permuted by the row number modulo 8, so that neither the 8 chunks of a row nor the same
// chunk of 8 rows have bank conflicts (PTX ISA, "Swizzling modes"):
//
//     row 0    0 1 2 3 4 5 6 7
//     row 1    1 0 3 2 5 4 7 6
//     row 2    2 3 0 1 6 7 4 5   …
#pragma once

#include <cstdint>

#include "kernels/common/host_device.hpp"

namespace stepladder {

inline constexpr int swizzled_row = 32;  // floats: 128 bytes

// The offset of an element in floats. The first row starts at a multiple of 1024 bytes.
STEPLADDER_HOST_DEVICE constexpr int swizzled(int row, int column) {
  const int chunk = (column / 4) ^ (row % 8);
  return row * swizzled_row + chunk * 4 + column % 4;
}

// The wgmma descriptor of a swizzled, K-contiguous matrix at this shared address (PTX ISA, "Matrix
// Descriptor Format"): the swizzle mode, and a stride of 1024 bytes between groups of 8 rows. (The
// leading-dimension offset is unused with a swizzle.)
STEPLADDER_HOST_DEVICE constexpr std::uint64_t wgmma_descriptor(std::uint32_t address) {
  constexpr std::uint64_t swizzle_128_bytes = 1, eight_rows = 1024;
  return swizzle_128_bytes << 62 | (eight_rows >> 4) << 32 | (address & 0x3ffffU) >> 4;
}

// The descriptor of the submatrix that begins at [row, column]; row is a multiple of 8.
STEPLADDER_HOST_DEVICE constexpr std::uint64_t advance_descriptor(std::uint64_t descriptor, int row,
                                                                  int column) {
  return descriptor + static_cast<std::uint64_t>(row * 128 + column * 4) / 16;
}

}  // namespace stepladder
