// The source in 16-byte chunks of four channels: in place, or repacked in every run as [batch,
// rows, columns, groups, chunks], with zeros for the channels that pad a group's last chunk.
// Repacking reads and writes the source once. Only .cu files include this.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cuda/wgmma/gather.hpp"

namespace stepladder::convolution {

struct ChunkCopy {
  CudaStrides strides;  // of the source
  int pixels, channels, groups, channel_chunks;
  FastDivisor by_image, by_row, by_group;
};

// Threads: pixels, chunks. Consecutive blocks take consecutive chunks, so that neighbours write to
// adjacent memory.
static __global__ void to_chunks_kernel(ChunkCopy c, const float* from, float4* to) {
  const int chunks = c.groups * c.channel_chunks;
  const unsigned chunk_blocks = ceil_div(chunks, blockDim.y);
  const auto pixel = static_cast<int>(blockIdx.x / chunk_blocks * blockDim.x + threadIdx.x);
  const auto chunk = static_cast<int>(blockIdx.x % chunk_blocks * blockDim.y + threadIdx.y);
  if (pixel >= c.pixels || chunk >= chunks) return;
  const auto [image, within] = c.by_image.divide(static_cast<std::uint32_t>(pixel));
  const auto [row, column] = c.by_row.divide(within);
  const auto [group, first] = c.by_group.divide(static_cast<std::uint32_t>(chunk));
  const int channel = static_cast<int>(first) * chunk_channels;
  const float* const at = from + static_cast<int>(image) * c.strides.image +
                          static_cast<int>(row) * c.strides.row +
                          static_cast<int>(column) * c.strides.column +
                          (static_cast<int>(group) * c.channels + channel) * c.strides.channel;
  const auto value = [&](int i) {
    return channel + i < c.channels ? at[std::int64_t{i} * c.strides.channel] : 0.0F;
  };
  to[std::int64_t{pixel} * chunks + chunk] = make_float4(value(0), value(1), value(2), value(3));
}

class ChunkedSource {
 public:
  explicit ChunkedSource(const CudaCorrelation& c)
      : copy_{.strides = c.source,
              .pixels = c.batch * c.rows.source * c.columns.source,
              .channels = c.source_channels,
              .groups = c.groups,
              .channel_chunks = ceil_div(c.source_channels, chunk_channels),
              .by_image = FastDivisor(static_cast<std::uint32_t>(c.rows.source * c.columns.source)),
              .by_row = FastDivisor(static_cast<std::uint32_t>(c.columns.source)),
              .by_group = {}},
        row_pixels_(c.columns.source),
        image_pixels_(c.rows.source * c.columns.source) {
    copy_.by_group = FastDivisor(static_cast<std::uint32_t>(copy_.channel_chunks));
    if (c.source.channel != 1 || c.source_channels % chunk_channels != 0)
      chunks_ =
          device_memory(sizeof(float4) * static_cast<std::size_t>(copy_.pixels) * pixel_chunks());
  }

  ChunkStrides strides() const {
    return {image_pixels_ * pixel_chunks(), row_pixels_ * pixel_chunks(), pixel_chunks(),
            copy_.channel_chunks};
  }

  // Returns the source in chunks. Throws std::runtime_error if it is read in place and unaligned.
  const float* prepare(const float* from) const {
    if (chunks_ == nullptr) {
      if (reinterpret_cast<std::uintptr_t>(from) % sizeof(float4) != 0)
        throw std::runtime_error(
            "an operand of a convolution in NHWC begins at an address that is not a multiple of 16 "
            "bytes; allocate it separately");
      return from;
    }
    constexpr int max_side_by_side = 8;  // 128 bytes
    const auto side_by_side = static_cast<unsigned>(std::min(pixel_chunks(), max_side_by_side));
    const dim3 threads(block_threads / side_by_side, side_by_side);
    launch(to_chunks_kernel,
           {blocks_for(copy_.pixels, threads.x) * blocks_for(pixel_chunks(), threads.y), threads},
           copy_, from, static_cast<float4*>(chunks_.get()));
    return static_cast<const float*>(chunks_.get());
  }

 private:
  int pixel_chunks() const { return copy_.groups * copy_.channel_chunks; }

  ChunkCopy copy_;
  int row_pixels_, image_pixels_;
  DeviceMemory chunks_;
};

}  // namespace stepladder::convolution
