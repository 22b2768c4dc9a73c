// The factor that is never written down: the source as the filters see it, [pixels, terms], fetched into
// shared memory in pieces of four channels. A sum's terms are (row of the filter, column, channel), the
// channel innermost, so that four of them are 16 bytes of the source and lie in padding together. Each
// piece has a tap of its own, and a step's 8 pieces are any 8 that follow each other: inputs of 3 or 48
// channels leave no part of a step empty. Only .cu files include this.
#pragma once

#include "kernels/common/cuda/async_copy.hpp"
#include "kernels/common/cuda/fast_divisor.hpp"
#include "kernels/common/cuda/swizzle.hpp"
#include "kernels/convolution/cuda/correlation.hpp"
#include "kernels/convolution/cuda/wgmma/tiles.hpp"

namespace stepladder::convolution {

// Of [batch, rows, columns, groups, pieces of a group]; in pieces.
struct PieceStrides {
  int image, row, column, group;
};

struct Gathering {
  Gathering(const Correlation& c, const PieceStrides& of_source)
      : source(nullptr),
        strides(of_source),
        rows(c.rows),
        columns(c.columns),
        channel_pieces((c.source_channels + piece_channels - 1) / piece_channels),
        pieces(c.taps() * channel_pieces),
        pixels(static_cast<int>(c.pixels())),
        of_image(static_cast<std::uint32_t>(c.rows.pixels * c.columns.pixels)),
        of_row(static_cast<std::uint32_t>(c.columns.pixels)),
        of_tap(static_cast<std::uint32_t>(channel_pieces)),
        of_tap_row(static_cast<std::uint32_t>(c.columns.taps > 0 ? c.columns.taps : 1)) {}

  const float* source;
  PieceStrides strides;
  CudaAxis rows, columns;
  int channel_pieces;
  int pieces, pixels;  // of the sum, of the target
  FastDivisor of_image, of_row, of_tap, of_tap_row;

  // A pixel of the target as it lies in the source, and a piece of the sum, which lies so much further on.
  struct alignas(16) Place {
    int row, column, at;
  };
  static constexpr int nowhere = -(1 << 30);  // a row: no other brings it back inside

  STEPLADDER_HOST_DEVICE Place pixel(int index, int group) const {
    if (index >= pixels) return {nowhere, 0, 0};
    const auto [image, within] = of_image.divide(static_cast<std::uint32_t>(index));
    const auto [a, b] = of_row.divide(within);
    const int row = static_cast<int>(a) * rows.stride + rows.origin;
    const int column = static_cast<int>(b) * columns.stride + columns.origin;
    return {row, column,
            static_cast<int>(image) * strides.image + row * strides.row + column * strides.column +
                group * strides.group};
  }
  STEPLADDER_HOST_DEVICE Place piece(int index) const {
    if (index >= pieces) return {nowhere, 0, 0};
    const auto [tap, channels] = of_tap.divide(static_cast<std::uint32_t>(index));
    const auto [r, s] = of_tap_row.divide(tap);
    const int row = static_cast<int>(r), column = static_cast<int>(s);
    return {row, column, row * strides.row + column * strides.column + static_cast<int>(channels)};
  }

  // Padding is zeros, and so is what lies beyond the last pixel and the last piece.
  __device__ void copy(float* to, const Place& pixel, const Place& piece) const {
    const bool is_inside = bool(inside(pixel.row + piece.row, rows.source) &
                                inside(pixel.column + piece.column, columns.source));  // no branch
    copy_async_or_zeros(to, source + std::int64_t{pixel.at + piece.at} * piece_channels, is_inside);
  }
};

// [128 pixels, 32 terms] of shared memory, along the depth: for forward and backward_data. A thread
// fetches one piece for 8 pixels, whose places it keeps; 8 threads fetch 128 bytes of a pixel.
class GatherPixels {
 public:
  __device__ GatherPixels(const Gathering& g, int tile_row, int group) : g_(g) {
#pragma unroll
    for (int i = 0; i < count; ++i)
      pixels_[i] = g.pixel(tile_row * wgmma_rows + own_row() + i * further, group);
  }

  __device__ void copy(float* first, int step) const {
    const Gathering::Place piece = g_.piece(step * pieces + own_piece());
    float* const to = first + swizzled(own_row(), own_piece() * piece_channels);
#pragma unroll
    for (int i = 0; i < count; ++i) g_.copy(to + i * further * wgmma_depth, pixels_[i], piece);
  }

  __device__ static float element(const float* first, int x, int l) {
    return first[swizzled(x, l)];
  }

 private:
  static constexpr int pieces = wgmma_depth / piece_channels;  // of a step
  static constexpr int further = 128 / pieces,
                       count = wgmma_rows / further;  // a multiple of 8: swizzles repeat
  __device__ static int own_row() { return static_cast<int>(threadIdx.x) / pieces; }
  __device__ static int own_piece() { return static_cast<int>(threadIdx.x) % pieces; }

  const Gathering& g_;
  Gathering::Place pixels_[count];
};

// [32 pixels, 128 terms], across the depth: for backward_weights, whose sum is over pixels. A thread
// fetches its one piece for every fourth pixel, a warp 512 bytes of one. So the places of 8 pixels are the
// same for a whole warp: 8 lanes work out one each.
class GatherTerms {
 public:
  __device__ GatherTerms(const Gathering& g, int tile_row, int group)
      : g_(g), group_(group), piece_(g.piece(tile_row * wgmma_rows / piece_channels + lane())) {}

  __device__ void copy(float* first, int step) const {
    __shared__ Gathering::Place places[warps][count];
    __syncwarp();  // none still reads those of the step before
    if (lane() < count)
      places[warp()][lane()] = g_.pixel(step * wgmma_depth + warp() + lane() * warps, group_);
    __syncwarp();
    float* const to = first + place(warp(), lane() * piece_channels);
#pragma unroll
    for (int i = 0; i < count; ++i) g_.copy(to + i * warps * wgmma_rows, places[warp()][i], piece_);
  }

  __device__ static float element(const float* first, int x, int l) { return first[place(l, x)]; }

 private:
  static constexpr int warps = 4, count = wgmma_depth / warps;
  // A warp reads 8 terms of 4 pixels below each other at once: their pieces change places, so that all
  // lie in different banks.
  __device__ static int place(int pixel, int term) {
    const int piece = term / piece_channels ^ pixel % 4 * 2;
    return pixel * wgmma_rows + piece * piece_channels + term % piece_channels;
  }
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int warp() { return static_cast<int>(threadIdx.x) / 32; }

  const Gathering& g_;
  int group_;
  Gathering::Place piece_;
};

}  // namespace stepladder::convolution
