// A source whose channels can be fetched in pieces of four: where it lies, or laid out anew, in every run,
// as [batch, rows, columns, groups, pieces], with zeros for the channels that fill a group's last piece.
// That reads and writes the source once. Only .cu files include this.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "kernels/common/cuda/plan.hpp"
#include "kernels/convolution/cuda/wgmma/gather.hpp"

namespace stepladder::convolution {

struct PieceCopy {
  CudaStrides strides;  // of what is read
  int pixels, channels, groups, channel_pieces;
  FastDivisor of_image, of_row, of_group;
};

// Threads: pixels, pieces. Blocks are numbered along the pieces, so that neighbours write to neighbours.
static __global__ void to_pieces_kernel(PieceCopy c, const float* from, float4* to) {
  const int pieces = c.groups * c.channel_pieces;
  const unsigned across = (pieces + blockDim.y - 1) / blockDim.y;
  const auto pixel = static_cast<int>(blockIdx.x / across * blockDim.x + threadIdx.x);
  const auto piece = static_cast<int>(blockIdx.x % across * blockDim.y + threadIdx.y);
  if (pixel >= c.pixels || piece >= pieces) return;
  const auto [image, within] = c.of_image.divide(static_cast<std::uint32_t>(pixel));
  const auto [row, column] = c.of_row.divide(within);
  const auto [group, first] = c.of_group.divide(static_cast<std::uint32_t>(piece));
  const int channel = static_cast<int>(first) * piece_channels;
  const float* const at = from + static_cast<int>(image) * c.strides.image +
                          static_cast<int>(row) * c.strides.row +
                          static_cast<int>(column) * c.strides.column +
                          (static_cast<int>(group) * c.channels + channel) * c.strides.channel;
  const auto value = [&](int i) {
    return channel + i < c.channels ? at[std::int64_t{i} * c.strides.channel] : 0.0F;
  };
  to[std::int64_t{pixel} * pieces + piece] = make_float4(value(0), value(1), value(2), value(3));
}

class PieceSource {
 public:
  explicit PieceSource(const Correlation& c)
      : copy_{.strides = c.source,
              .pixels = c.batch * c.rows.source * c.columns.source,
              .channels = c.source_channels,
              .groups = c.groups,
              .channel_pieces = (c.source_channels + piece_channels - 1) / piece_channels,
              .of_image = FastDivisor(static_cast<std::uint32_t>(c.rows.source * c.columns.source)),
              .of_row = FastDivisor(static_cast<std::uint32_t>(c.columns.source)),
              .of_group = {}},
        row_(c.columns.source),
        image_(c.rows.source * c.columns.source) {
    copy_.of_group = FastDivisor(static_cast<std::uint32_t>(copy_.channel_pieces));
    if (c.source.channel != 1 || c.source_channels % piece_channels != 0)
      space_ = device_memory(sizeof(float4) * static_cast<std::size_t>(copy_.pixels) * pixel());
  }

  PieceStrides strides() const {
    return {image_ * pixel(), row_ * pixel(), pixel(), copy_.channel_pieces};
  }

  // The source in pieces.
  const float* prepare(const float* from) const {
    if (space_ == nullptr) {
      if (reinterpret_cast<std::uintptr_t>(from) % sizeof(float4) != 0)
        throw std::runtime_error(
            "an operand of a convolution in NHWC begins at an address that is no multiple of 16 "
            "bytes; allocate it by itself");
      return from;
    }
    constexpr int most_side_by_side = 8;  // 128 bytes
    const auto pieces = static_cast<unsigned>(std::min(pixel(), most_side_by_side));
    const dim3 threads(block_threads / pieces, pieces);
    launch(to_pieces_kernel,
           {blocks_for(copy_.pixels, threads.x) * blocks_for(pixel(), threads.y), threads}, copy_,
           from, static_cast<float4*>(space_.get()));
    return static_cast<const float*>(space_.get());
  }

 private:
  int pixel() const { return copy_.groups * copy_.channel_pieces; }  // in pieces

  PieceCopy copy_;
  int row_, image_;  // in pixels
  DeviceMemory space_;
};

}  // namespace stepladder::convolution
