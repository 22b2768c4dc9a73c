// forward and backward_data as a matrix product: the target [channels, pixels of the batch] is the
// filters [channels, terms] times the source as the pixels see it [terms, pixels], which is never
// written down.
#pragma once

#include <type_traits>

#include "kernels/common/cuda/fast_divisor.hpp"
#include "kernels/convolution/cuda/implicit_gemm/terms.hpp"
#include "kernels/convolution/cuda/implicit_gemm/tile.hpp"

namespace stepladder::convolution {

struct CorrelationProblem {
  Correlation c;
  const Term* terms;
  int term_count, pixels;
  FastDivisor image, row;  // pixels of an image, of a row
  // NCHW: four pixels from a multiple of four on are 16 bytes of one plane. NHWC: four channels are
  // 16 bytes of a pixel.
  bool in_fours;
};

// Lanes next to each other take terms next to each other, which lie so in memory.
template <class Tile>
struct Filters {
  static constexpr int stride = Tile::threads / Tile::depth, count = Tile::m / stride;
  const CorrelationProblem& g;
  const float* w;  // of the group
  int first_channel;
  float values[count];

  __device__ void fetch(int step) {
    const int k = step * Tile::depth + static_cast<int>(threadIdx.x) % Tile::depth;
    const int first = first_channel + static_cast<int>(threadIdx.x) / Tile::depth;
    const float* from = w + (k < g.term_count ? g.terms[k].filter : 0);
#pragma unroll
    for (int j = 0; j < count; ++j) {
      const int channel = first + j * stride;
      const bool there = k < g.term_count && channel < g.c.target_channels;
      values[j] = there ? from[channel * g.c.w_target] : 0.0F;
    }
  }
  __device__ void put(typename Tile::LeftStep& shared) const {
    put_along_depth<Tile>(values, shared);
  }
};

// A pixel of the target, and where it begins to read the source: perhaps before it, in padding.
struct Pixel {
  int row, column, source;  // past the last pixel such that all is padding

  static __device__ Pixel number(int index, const CorrelationProblem& g, int group) {
    const auto [image, within] = g.image.divide(index);
    const auto [a, b] = g.row.divide(within);
    const int row = static_cast<int>(a) * g.c.rows.stride + g.c.rows.origin;
    const int column = static_cast<int>(b) * g.c.columns.stride + g.c.columns.origin;
    return {index < g.pixels ? row : g.c.rows.source, column,
            static_cast<int>(image) * g.c.source.image +
                group * g.c.source_channels * g.c.source.channel + row * g.c.source.row +
                column * g.c.source.column};
  }
  __device__ bool sees(const CorrelationProblem& g, const Term& term) const {
    return inside(row + term.row, g.c.rows.source) &&
           inside(column + term.column, g.c.columns.source);
  }
};

// NCHW: a thread fetches for one pixel all along, and lanes next to each other for neighbours.
template <class Tile>
struct SeenByPixels {
  static constexpr int stride = Tile::threads / Tile::n, count = Tile::depth / stride;
  const CorrelationProblem& g;
  const float* source;
  Pixel pixel;
  float values[count];

  __device__ SeenByPixels(const CorrelationProblem& problem, const float* from, int group,
                          int first_pixel)
      : g(problem),
        source(from),
        pixel(Pixel::number(first_pixel + static_cast<int>(threadIdx.x) % Tile::n, g, group)) {}

  __device__ void fetch(int step) {
    const int first = step * Tile::depth + static_cast<int>(threadIdx.x) / Tile::n;
#pragma unroll
    for (int j = 0; j < count; ++j) {
      values[j] = 0;
      if (first + j * stride >= g.term_count) continue;
      const Term term = g.terms[first + j * stride];
      if (pixel.sees(g, term)) values[j] = source[pixel.source + term.source];
    }
  }
  __device__ void put(typename Tile::RightStep& shared) const {
    put_across_depth<Tile, Tile::n>(values, shared);
  }
};

// NHWC: lanes next to each other fetch neighbouring channels of a pixel, a thread always for the same
// pixels.
template <class Tile>
struct ChannelsOfPixels {
  static constexpr int stride = Tile::threads / Tile::depth, count = Tile::n / stride;
  const CorrelationProblem& g;
  const float* source;
  Pixel pixels[count];
  float values[count];

  __device__ ChannelsOfPixels(const CorrelationProblem& problem, const float* from, int group,
                              int first_pixel)
      : g(problem), source(from) {
    const int first = first_pixel + static_cast<int>(threadIdx.x) / Tile::depth;
#pragma unroll
    for (int j = 0; j < count; ++j) pixels[j] = Pixel::number(first + j * stride, g, group);
  }

  __device__ void fetch(int step) {
    const int k = step * Tile::depth + static_cast<int>(threadIdx.x) % Tile::depth;
    const bool there = k < g.term_count;
    const Term term = g.terms[there ? k : 0];
#pragma unroll
    for (int j = 0; j < count; ++j)
      values[j] = there && pixels[j].sees(g, term) ? source[pixels[j].source + term.source] : 0.0F;
  }
  __device__ void put(typename Tile::RightStep& shared) const {
    put_along_depth<Tile>(values, shared);
  }
};

// Where pixel `pixel` of the group's first channel lies in the target.
__device__ inline std::int64_t place_in_target(const CorrelationProblem& g, int group, int pixel) {
  const auto [image, within] = g.image.divide(pixel);
  const auto [a, b] = g.row.divide(within);
  const int row = g.c.rows.first + static_cast<int>(a) * g.c.rows.step;
  const int column = g.c.columns.first + static_cast<int>(b) * g.c.columns.step;
  return std::int64_t{image} * g.c.target.image + group * g.c.target_channels * g.c.target.channel +
         row * g.c.target.row + column * g.c.target.column;
}

template <int size>
struct alignas(size * sizeof(float)) Run {
  float sums[size];
};

// A thread's sums in runs of pixels, which lie together in NCHW.
template <class Tile>
__device__ void store_pixels(const CorrelationProblem& g, int group, int first_channel,
                             int first_pixel, const typename Tile::Sums& sums, float* target) {
  constexpr int run = Tile::side_by_side;
#pragma unroll
  for (int j = 0; j < Tile::sums_n; j += run) {
    const int pixel = first_pixel + Tile::column(j);
    if (pixel >= g.pixels) continue;
    std::int64_t places[run];
    const int present = min(run, g.pixels - pixel);
    for (int q = 0; q < run; ++q)
      places[q] = place_in_target(g, group, q < present ? pixel + q : pixel);
#pragma unroll
    for (int i = 0; i < Tile::sums_m; ++i) {
      const int channel = first_channel + Tile::row(i);
      if (channel >= g.c.target_channels) continue;
      float* to = target + std::int64_t{channel} * g.c.target.channel;
      if (g.in_fours) {
        Run<run> stored;
#pragma unroll
        for (int q = 0; q < run; ++q) stored.sums[q] = sums[i][j + q];
        *reinterpret_cast<Run<run>*>(to + places[0]) = stored;
      } else {
#pragma unroll
        for (int q = 0; q < run; ++q)
          if (q < present) to[places[q]] = sums[i][j + q];
      }
    }
  }
}

// Likewise in runs of channels, which lie together in NHWC.
template <class Tile>
__device__ void store_channels(const CorrelationProblem& g, int group, int first_channel,
                               int first_pixel, const typename Tile::Sums& sums, float* target) {
  constexpr int run = Tile::one_below_another;
#pragma unroll
  for (int j = 0; j < Tile::sums_n; ++j) {
    const int pixel = first_pixel + Tile::column(j);
    if (pixel >= g.pixels) continue;
    float* const to = target + place_in_target(g, group, pixel);
#pragma unroll
    for (int i = 0; i < Tile::sums_m; i += run) {
      const int channel = first_channel + Tile::row(i);
      if (channel >= g.c.target_channels) continue;
      if (g.in_fours) {
        Run<run> stored;
#pragma unroll
        for (int q = 0; q < run; ++q) stored.sums[q] = sums[i + q][j];
        *reinterpret_cast<Run<run>*>(to + channel) = stored;
      } else {
#pragma unroll
        for (int q = 0; q < run; ++q)
          if (channel + q < g.c.target_channels) to[channel + q] = sums[i + q][j];
      }
    }
  }
}

// Blocks: pixels, channels, group.
template <class Tile, bool channels_last>
__global__ void __launch_bounds__(Tile::threads)
    correlation_kernel(CorrelationProblem g, const float* source, const float* w, float* target) {
  const int group = static_cast<int>(blockIdx.z);
  const int first_pixel = static_cast<int>(blockIdx.x) * Tile::n;
  const int first_channel = static_cast<int>(blockIdx.y) * Tile::m;

  typename Tile::Sums sums = {};
  Filters<Tile> left{g, w + group * g.c.w_group, first_channel, {}};
  std::conditional_t<channels_last, ChannelsOfPixels<Tile>, SeenByPixels<Tile>> right(
      g, source, group, first_pixel);
  sum_products<Tile>(left, right, 0, (g.term_count + Tile::depth - 1) / Tile::depth, sums);

  if constexpr (channels_last)
    store_channels<Tile>(g, group, first_channel, first_pixel, sums, target);
  else
    store_pixels<Tile>(g, group, first_channel, first_pixel, sums, target);
}

// The product's sizes and table, ready to launch.
template <class Tiles>
class CorrelationProduct {
 public:
  explicit CorrelationProduct(const Correlation& c)
      : terms_(c),
        problem_{.c = c,
                 .terms = terms_.data(),
                 .term_count = terms_.count(),
                 .pixels = static_cast<int>(c.pixels()),
                 .image = FastDivisor(static_cast<std::uint32_t>(c.rows.pixels * c.columns.pixels)),
                 .row = FastDivisor(static_cast<std::uint32_t>(c.columns.pixels)),
                 .in_fours = false} {}

  void run(const float* source, const float* w, float* target) const {
    CorrelationProblem g = problem_;
    const Correlation& c = g.c;
    const bool in_vectors = reinterpret_cast<std::uintptr_t>(target) % sizeof(float4) == 0;
    g.in_fours = in_vectors && (c.channels_last ? c.target_channels % 4 == 0
                                                : c.rows.step == 1 && c.columns.step == 1 &&
                                                      c.target.channel % 4 == 0);
    with_tile(Tiles{}, Fetch::gathered, c.target_channels, g.pixels, c.groups, [&](auto tile) {
      const dim3 blocks(blocks_for(g.pixels, tile.n), blocks_for(c.target_channels, tile.m),
                        c.groups);
      launch(c.channels_last ? correlation_kernel<decltype(tile), true>
                             : correlation_kernel<decltype(tile), false>,
             {blocks, tile.threads}, g, source, w, target);
    });
  }

 private:
  Terms terms_;
  CorrelationProblem problem_;
};

}  // namespace stepladder::convolution
