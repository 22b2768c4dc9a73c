// forward and backward_data as an implicit GEMM: the target [channels, pixels of the batch] is the
// filters [channels, CRS] times the im2col matrix of the source [CRS, pixels], which is never
// stored.
#pragma once

#include <type_traits>

#include "kernels/common/cuda/fast_divisor.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cuda/implicit_gemm/crs_table.hpp"
#include "kernels/convolution/cuda/implicit_gemm/tile.hpp"

namespace stepladder::convolution {

struct CorrelationParams {
  CudaCorrelation c;
  const CrsOffsets* crs;  // [crs_count]
  int crs_count, pixels;
  FastDivisor by_image, by_row;  // by the pixels of an image, of a row
  // The target can be written 16 bytes at a time: four pixels of a plane (NCHW) or four channels of
  // a pixel (NHWC).
  bool vector_stores;
};

// Consecutive threads load consecutive CRS, which are consecutive in w.
template <class Tile>
struct FilterLoader {
  static constexpr int stride = Tile::threads / Tile::k, count = Tile::m / stride;
  const CorrelationParams& p;
  const float* w;  // of the group
  int first_channel;
  float values[count];

  __device__ void load(int step) {
    const int crs = step * Tile::k + static_cast<int>(threadIdx.x) % Tile::k;
    const int first = first_channel + static_cast<int>(threadIdx.x) / Tile::k;
    const float* from = w + (crs < p.crs_count ? p.crs[crs].filter : 0);
#pragma unroll
    for (int j = 0; j < count; ++j) {
      const int channel = first + j * stride;
      const bool valid = crs < p.crs_count && channel < p.c.target_channels;
      values[j] = valid ? from[channel * p.c.w_target] : 0.0F;
    }
  }
  __device__ void store(typename Tile::SharedA& shared) const {
    store_k_contiguous<Tile>(values, shared);
  }
};

// The source element under the first tap of a target pixel, which may be in padding.
struct SourceCorner {
  int row, column, offset;

  // For indices beyond the last pixel, all taps are in padding.
  static __device__ SourceCorner of_pixel(int index, const CorrelationParams& p, int group) {
    const auto [image, within] = p.by_image.divide(index);
    const auto [a, b] = p.by_row.divide(within);
    const int row = static_cast<int>(a) * p.c.rows.stride + p.c.rows.origin;
    const int column = static_cast<int>(b) * p.c.columns.stride + p.c.columns.origin;
    return {index < p.pixels ? row : p.c.rows.source, column,
            static_cast<int>(image) * p.c.source.image +
                group * p.c.source_channels * p.c.source.channel + row * p.c.source.row +
                column * p.c.source.column};
  }
  __device__ bool is_inside_at(const CrsOffsets& crs, const CorrelationParams& p) const {
    return is_inside(row + crs.row, p.c.rows.source) &&
           is_inside(column + crs.column, p.c.columns.source);
  }
};

// NCHW: consecutive threads load consecutive pixels, and a thread always the same pixel.
template <class Tile>
struct SourceLoaderNchw {
  static constexpr int stride = Tile::threads / Tile::n, count = Tile::k / stride;
  const CorrelationParams& p;
  const float* source;
  SourceCorner corner;
  float values[count];

  __device__ SourceLoaderNchw(const CorrelationParams& params, const float* from, int group,
                              int first_pixel)
      : p(params),
        source(from),
        corner(SourceCorner::of_pixel(first_pixel + static_cast<int>(threadIdx.x) % Tile::n, p,
                                      group)) {}

  __device__ void load(int step) {
    const int first = step * Tile::k + static_cast<int>(threadIdx.x) / Tile::n;
#pragma unroll
    for (int j = 0; j < count; ++j) {
      values[j] = 0;
      if (first + j * stride >= p.crs_count) continue;
      const CrsOffsets crs = p.crs[first + j * stride];
      if (corner.is_inside_at(crs, p)) values[j] = source[corner.offset + crs.source];
    }
  }
  __device__ void store(typename Tile::SharedB& shared) const {
    store_mn_contiguous<Tile, Tile::n>(values, shared);
  }
};

// NHWC: consecutive threads load consecutive channels, and a thread always the same pixels.
template <class Tile>
struct SourceLoaderNhwc {
  static constexpr int stride = Tile::threads / Tile::k, count = Tile::n / stride;
  const CorrelationParams& p;
  const float* source;
  SourceCorner corners[count];
  float values[count];

  __device__ SourceLoaderNhwc(const CorrelationParams& params, const float* from, int group,
                              int first_pixel)
      : p(params), source(from) {
    const int first = first_pixel + static_cast<int>(threadIdx.x) / Tile::k;
#pragma unroll
    for (int j = 0; j < count; ++j)
      corners[j] = SourceCorner::of_pixel(first + j * stride, p, group);
  }

  __device__ void load(int step) {
    const int index = step * Tile::k + static_cast<int>(threadIdx.x) % Tile::k;
    const bool valid = index < p.crs_count;
    const CrsOffsets crs = p.crs[valid ? index : 0];
#pragma unroll
    for (int j = 0; j < count; ++j)
      values[j] =
          valid && corners[j].is_inside_at(crs, p) ? source[corners[j].offset + crs.source] : 0.0F;
  }
  __device__ void store(typename Tile::SharedB& shared) const {
    store_k_contiguous<Tile>(values, shared);
  }
};

// Offset of pixel `pixel` of the group's first channel in the target.
__device__ inline std::int64_t target_offset(const CorrelationParams& p, int group, int pixel) {
  const auto [image, within] = p.by_image.divide(pixel);
  const auto [a, b] = p.by_row.divide(within);
  const int row = p.c.rows.first + static_cast<int>(a) * p.c.rows.step;
  const int column = p.c.columns.first + static_cast<int>(b) * p.c.columns.step;
  return std::int64_t{image} * p.c.target.image + group * p.c.target_channels * p.c.target.channel +
         row * p.c.target.row + column * p.c.target.column;
}

template <int size>
struct alignas(size * sizeof(float)) FloatVector {
  float values[size];
};

// Stores a thread's accumulators in vectors of pixels, which are contiguous in NCHW.
template <class Tile>
__device__ void store_nchw(const CorrelationParams& p, int group, int first_channel,
                           int first_pixel, const typename Tile::Accumulators& accumulators,
                           float* target) {
  constexpr int size = Tile::vector_n;
#pragma unroll
  for (int j = 0; j < Tile::thread_n; j += size) {
    const int pixel = first_pixel + Tile::column(j);
    if (pixel >= p.pixels) continue;
    std::int64_t offsets[size];
    const int count = min(size, p.pixels - pixel);
    for (int q = 0; q < size; ++q)
      offsets[q] = target_offset(p, group, q < count ? pixel + q : pixel);
#pragma unroll
    for (int i = 0; i < Tile::thread_m; ++i) {
      const int channel = first_channel + Tile::row(i);
      if (channel >= p.c.target_channels) continue;
      float* to = target + std::int64_t{channel} * p.c.target.channel;
      if (p.vector_stores) {
        FloatVector<size> stored;
#pragma unroll
        for (int q = 0; q < size; ++q) stored.values[q] = accumulators[i][j + q];
        *reinterpret_cast<FloatVector<size>*>(to + offsets[0]) = stored;
      } else {
#pragma unroll
        for (int q = 0; q < size; ++q)
          if (q < count) to[offsets[q]] = accumulators[i][j + q];
      }
    }
  }
}

// The same in vectors of channels, which are contiguous in NHWC.
template <class Tile>
__device__ void store_nhwc(const CorrelationParams& p, int group, int first_channel,
                           int first_pixel, const typename Tile::Accumulators& accumulators,
                           float* target) {
  constexpr int size = Tile::vector_m;
#pragma unroll
  for (int j = 0; j < Tile::thread_n; ++j) {
    const int pixel = first_pixel + Tile::column(j);
    if (pixel >= p.pixels) continue;
    float* const to = target + target_offset(p, group, pixel);
#pragma unroll
    for (int i = 0; i < Tile::thread_m; i += size) {
      const int channel = first_channel + Tile::row(i);
      if (channel >= p.c.target_channels) continue;
      if (p.vector_stores) {
        FloatVector<size> stored;
#pragma unroll
        for (int q = 0; q < size; ++q) stored.values[q] = accumulators[i + q][j];
        *reinterpret_cast<FloatVector<size>*>(to + channel) = stored;
      } else {
#pragma unroll
        for (int q = 0; q < size; ++q)
          if (channel + q < p.c.target_channels) to[channel + q] = accumulators[i + q][j];
      }
    }
  }
}

// Grid: pixels, channels, group.
template <class Tile, bool channels_last>
__global__ void __launch_bounds__(Tile::threads)
    implicit_gemm_correlation_kernel(CorrelationParams p, const float* source, const float* w,
                                     float* target) {
  const int group = static_cast<int>(blockIdx.z);
  const int first_pixel = static_cast<int>(blockIdx.x) * Tile::n;
  const int first_channel = static_cast<int>(blockIdx.y) * Tile::m;

  typename Tile::Accumulators accumulators = {};
  FilterLoader<Tile> a{p, w + group * p.c.w_group, first_channel, {}};
  std::conditional_t<channels_last, SourceLoaderNhwc<Tile>, SourceLoaderNchw<Tile>> b(
      p, source, group, first_pixel);
  gemm_main_loop<Tile>(a, b, 0, ceil_div(p.crs_count, Tile::k), accumulators);

  if constexpr (channels_last)
    store_nhwc<Tile>(p, group, first_channel, first_pixel, accumulators, target);
  else
    store_nchw<Tile>(p, group, first_channel, first_pixel, accumulators, target);
}

// One correlation, prepared for launch.
template <class Tiles>
class CorrelationGemm {
 public:
  explicit CorrelationGemm(const CudaCorrelation& c)
      : table_(c),
        params_{
            .c = c,
            .crs = table_.data(),
            .crs_count = table_.count(),
            .pixels = static_cast<int>(c.pixels()),
            .by_image = FastDivisor(static_cast<std::uint32_t>(c.rows.pixels * c.columns.pixels)),
            .by_row = FastDivisor(static_cast<std::uint32_t>(c.columns.pixels)),
            .vector_stores = false} {
    require_gemm_grid(c.target_channels, c.groups);
  }

  void run(const float* source, const float* w, float* target) const {
    CorrelationParams p = params_;
    const CudaCorrelation& c = p.c;
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(target) % sizeof(float4) == 0;
    p.vector_stores = is_aligned && (c.channels_last ? c.target_channels % 4 == 0
                                                     : c.rows.step == 1 && c.columns.step == 1 &&
                                                           c.target.channel % 4 == 0);
    with_tile(Tiles{}, LoadCost::gathered, c.target_channels, p.pixels, c.groups, [&](auto tile) {
      const dim3 blocks(blocks_for(p.pixels, tile.n), blocks_for(c.target_channels, tile.m),
                        c.groups);
      launch(c.channels_last ? implicit_gemm_correlation_kernel<decltype(tile), true>
                             : implicit_gemm_correlation_kernel<decltype(tile), false>,
             {blocks, tile.threads}, p, source, w, target);
    });
  }

 private:
  CrsTable table_;
  CorrelationParams params_;
};

}  // namespace stepladder::convolution
