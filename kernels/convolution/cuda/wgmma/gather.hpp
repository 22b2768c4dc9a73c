// Operand A, the im2col matrix [pixels, CRS] of the source, which is gathered into shared memory in
// 16-byte chunks of four channels. The channel is the fastest index of CRS, so a chunk is
// contiguous in the source and lies in padding as a whole. Each chunk has its own tap: a K step
// takes the next 8 chunks, and inputs of 3 or 48 channels leave no part of a step empty. Only .cu
// files include this.
#pragma once

#include "kernels/common/cuda/async_copy.hpp"
#include "kernels/common/cuda/fast_divisor.hpp"
#include "kernels/common/cuda/swizzle.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cuda/correlation.hpp"
#include "kernels/convolution/cuda/wgmma/tiles.hpp"

namespace stepladder::convolution {

// Strides, in chunks, of a source [batch, rows, columns, groups, chunks of a group].
struct ChunkStrides {
  int image, row, column, group;
};

struct Im2colOperand {
  Im2colOperand(const CudaCorrelation& c, const ChunkStrides& source_strides)
      : source(nullptr),
        strides(source_strides),
        rows(c.rows),
        columns(c.columns),
        channel_chunks(ceil_div(c.source_channels, chunk_channels)),
        crs_chunks(c.taps() * channel_chunks),
        pixels(static_cast<int>(c.pixels())),
        by_image(static_cast<std::uint32_t>(c.rows.pixels * c.columns.pixels)),
        by_row(static_cast<std::uint32_t>(c.columns.pixels)),
        by_tap(static_cast<std::uint32_t>(channel_chunks)),
        by_tap_row(static_cast<std::uint32_t>(c.columns.taps > 0 ? c.columns.taps : 1)) {}

  const float* source;
  ChunkStrides strides;
  CudaAxis rows, columns;
  int channel_chunks;      // of a group
  int crs_chunks, pixels;  // size of the matrix
  FastDivisor by_image, by_row, by_tap, by_tap_row;

  // An element of the matrix is at the sum of two offsets: that of its pixel, which is the source
  // element under the first tap, and that of its chunk.
  struct alignas(16) Offset {
    int row, column, chunks;
  };
  static constexpr int outside = -(1 << 30);  // a row that is in padding, whatever is added

  STEPLADDER_HOST_DEVICE Offset pixel_offset(int index, int group) const {
    if (index >= pixels) return {outside, 0, 0};
    const auto [image, within] = by_image.divide(static_cast<std::uint32_t>(index));
    const auto [a, b] = by_row.divide(within);
    const int row = static_cast<int>(a) * rows.stride + rows.origin;
    const int column = static_cast<int>(b) * columns.stride + columns.origin;
    return {row, column,
            static_cast<int>(image) * strides.image + row * strides.row + column * strides.column +
                group * strides.group};
  }
  STEPLADDER_HOST_DEVICE Offset chunk_offset(int index) const {
    if (index >= crs_chunks) return {outside, 0, 0};
    const auto [tap, channels] = by_tap.divide(static_cast<std::uint32_t>(index));
    const auto [r, s] = by_tap_row.divide(tap);
    const int row = static_cast<int>(r), column = static_cast<int>(s);
    return {row, column, row * strides.row + column * strides.column + static_cast<int>(channels)};
  }

  // Starts the copy of one chunk. Padding, and everything beyond the matrix, is zeros.
  __device__ void copy(float* to, const Offset& pixel, const Offset& chunk) const {
    const bool valid = bool(is_inside(pixel.row + chunk.row, rows.source) &
                            is_inside(pixel.column + chunk.column, columns.source));  // no branch
    copy_async_zfill(to, source + std::int64_t{pixel.chunks + chunk.chunks} * chunk_channels,
                     valid);
  }
};

// Gathers [128 pixels, 32 CRS], K-contiguous and swizzled, for forward and backward_data. A thread
// copies one chunk of 8 pixels, whose offsets it keeps in registers; 8 threads copy 128 bytes of a
// pixel.
class GatherKContiguous {
 public:
  __device__ GatherKContiguous(const Im2colOperand& operand, int tile_row, int group)
      : operand_(operand) {
#pragma unroll
    for (int i = 0; i < count; ++i)
      pixels_[i] =
          operand_.pixel_offset(tile_row * wgmma_tile_m + own_row() + i * row_stride, group);
  }

  __device__ void copy(float* stage, int step) const {
    const Im2colOperand::Offset chunk = operand_.chunk_offset(step * step_chunks + own_chunk());
    float* const to = stage + swizzled(own_row(), own_chunk() * chunk_channels);
#pragma unroll
    for (int i = 0; i < count; ++i)
      operand_.copy(to + i * row_stride * wgmma_tile_k, pixels_[i], chunk);
  }

  __device__ static float element(const float* stage, int row, int l) {
    return stage[swizzled(row, l)];
  }

 private:
  static constexpr int step_chunks = wgmma_tile_k / chunk_channels;
  static constexpr int row_stride = 128 / step_chunks,  // a multiple of 8: swizzles repeat
      count = wgmma_tile_m / row_stride;
  __device__ static int own_row() { return static_cast<int>(threadIdx.x) / step_chunks; }
  __device__ static int own_chunk() { return static_cast<int>(threadIdx.x) % step_chunks; }

  const Im2colOperand& operand_;
  Im2colOperand::Offset pixels_[count];
};

// Gathers [32 pixels, 128 CRS], M-contiguous, for backward_weights, where K is the pixels. A thread
// copies its chunk of every fourth pixel, a warp 512 bytes of one pixel. All lanes of a warp need
// the same 8 pixel offsets: 8 lanes compute one each.
class GatherMContiguous {
 public:
  __device__ GatherMContiguous(const Im2colOperand& operand, int tile_row, int group)
      : operand_(operand),
        group_(group),
        chunk_(operand.chunk_offset(tile_row * wgmma_tile_m / chunk_channels + lane())) {}

  __device__ void copy(float* stage, int step) const {
    __shared__ Im2colOperand::Offset pixels[warps][count];
    __syncwarp();  // all lanes have read the offsets of the previous step
    if (lane() < count)
      pixels[warp()][lane()] =
          operand_.pixel_offset(step * wgmma_tile_k + warp() + lane() * warps, group_);
    __syncwarp();
    float* const to = stage + index(warp(), lane() * chunk_channels);
#pragma unroll
    for (int i = 0; i < count; ++i)
      operand_.copy(to + i * warps * wgmma_tile_m, pixels[warp()][i], chunk_);
  }

  __device__ static float element(const float* stage, int row, int l) {
    return stage[index(l, row)];
  }

 private:
  static constexpr int warps = 4, count = wgmma_tile_k / warps;
  // A warp reads 8 consecutive CRS of 4 consecutive pixels at once. Chunks are permuted by the
  // pixel, so these reads have no bank conflicts.
  __device__ static int index(int pixel, int crs) {
    const int chunk = crs / chunk_channels ^ pixel % 4 * 2;
    return pixel * wgmma_tile_m + chunk * chunk_channels + crs % chunk_channels;
  }
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int warp() { return static_cast<int>(threadIdx.x) / 32; }

  const Im2colOperand& operand_;
  int group_;
  Im2colOperand::Offset chunk_;
};

}  // namespace stepladder::convolution
