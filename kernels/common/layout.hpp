// Memory layouts of images [batch, channels, height, width]:
//
//   nchw      [batch, channels, height, width]
//   nhwc      [batch, height, width, channels]
//   chwn      [channels, height, width, batch]
//   nchw16c   [batch, blocks, height, width, 16]: blocks of 16 channels; channel c is element
//             c % 16 of block c / 16
//
// In nchw16c the last block is filled up with padding channels, whose elements are 0. Whoever
// writes an operand writes these zeros too: the harness for inputs, a variant for its results.
// Whoever reads one may rely on them. Padding counts as neither FLOPs nor bytes.
#pragma once

#include <cstdint>

#include "kernels/common/host_device.hpp"

namespace stepladder {

enum class Layout { nchw, nhwc, chwn, nchw16c };

const char* name_of(Layout layout);  // "nchw" and so on

inline constexpr std::int64_t block_channels = 16;  // of nchw16c

// Channels in memory, with those of padding.
constexpr std::int64_t stored_channels(Layout layout, std::int64_t channels) {
  if (layout != Layout::nchw16c) return channels;
  return (channels + block_channels - 1) / block_channels * block_channels;
}

// Distance in elements between neighbours along each axis of an operand. The first axis is the
// image of a batch, or the output channel of a filter.
struct Strides {
  std::int64_t first, channel, row, column;
  std::int64_t first_block = 16 * first;      // between blocks of 16 along the first axis
  std::int64_t channel_block = 16 * channel;  // between blocks of 16 channels

  // Offset of row 0, column 0 of channel c of image n.
  STEPLADDER_HOST_DEVICE constexpr std::int64_t plane(std::int64_t n, std::int64_t c) const {
    return n / 16 * first_block + n % 16 * first + c / 16 * channel_block + c % 16 * channel;
  }
};

constexpr Strides image_strides(Layout layout, std::int64_t batch, std::int64_t channels,
                                std::int64_t rows, std::int64_t columns) {
  const std::int64_t plane = rows * columns;
  switch (layout) {
    case Layout::nchw:
      return {channels * plane, plane, columns, 1};
    case Layout::nhwc:
      return {channels * plane, 1, columns * channels, channels};
    case Layout::chwn:
      return {1, plane * batch, columns * batch, batch};
    case Layout::nchw16c:
      break;
  }
  return {.first = stored_channels(layout, channels) * plane,
          .channel = 1,
          .row = columns * block_channels,
          .column = block_channels,
          .channel_block = plane * block_channels};
}

}  // namespace stepladder
