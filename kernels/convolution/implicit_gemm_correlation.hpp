// forward and backward_data as a matrix product: the target [channels, pixels of the batch] is the
// filters [channels, terms] times the source as the pixels see it [terms, pixels], which is never
// written down.
#pragma once

#include "kernels/common/fast_divisor.hpp"
#include "kernels/convolution/implicit_gemm_terms.hpp"
#include "kernels/convolution/implicit_gemm_tile.hpp"

namespace stepladder::convolution {

struct CorrelationProblem {
  Correlation c;
  const Term* terms;
  int term_count, pixels;
  FastDivisor image, row;  // pixels of an image, of a row
  bool in_fours;           // four pixels from a multiple of four on are 16 bytes of one plane
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

// A thread fetches for one pixel all along, and lanes next to each other for neighbours.
template <class Tile>
struct SeenByPixels {
  static constexpr int stride = Tile::threads / Tile::n, count = Tile::depth / stride;
  const CorrelationProblem& g;
  const float* source;  // its first element, for this thread's pixel
  int row, column;      // of that element; past the last pixel, such that all is padding
  float values[count];

  __device__ SeenByPixels(const CorrelationProblem& problem, const float* all, int group,
                          int first_pixel)
      : g(problem) {
    const int pixel = first_pixel + static_cast<int>(threadIdx.x) % Tile::n;
    const auto [image, within] = g.image.divide(pixel);
    const auto [a, b] = g.row.divide(within);
    row = static_cast<int>(a) * g.c.rows.stride + g.c.rows.origin;
    column = static_cast<int>(b) * g.c.columns.stride + g.c.columns.origin;
    const int plane = (static_cast<int>(image) * g.c.groups + group) * g.c.source_channels;
    source = all + (std::int64_t{plane} * g.c.rows.source + row) * g.c.columns.source + column;
    if (pixel >= g.pixels) row = g.c.rows.source;
  }

  __device__ void fetch(int step) {
    const int first = step * Tile::depth + static_cast<int>(threadIdx.x) / Tile::n;
#pragma unroll
    for (int j = 0; j < count; ++j) {
      values[j] = 0;
      if (first + j * stride >= g.term_count) continue;
      const Term term = g.terms[first + j * stride];
      if (inside(row + term.row, g.c.rows.source) &&
          inside(column + term.column, g.c.columns.source))
        values[j] = source[term.source];
    }
  }
  __device__ void put(typename Tile::RightStep& shared) const {
#pragma unroll
    for (int j = 0; j < count; ++j)
      shared[threadIdx.x / Tile::n + j * stride][threadIdx.x % Tile::n] = Tile::stored(values[j]);
  }
};

// Where pixel `pixel` of the group's first channel lies in the target.
__device__ inline std::int64_t place_in_target(const CorrelationProblem& g, int group, int pixel) {
  const auto [image, within] = g.image.divide(pixel);
  const auto [a, b] = g.row.divide(within);
  const int plane = (static_cast<int>(image) * g.c.groups + group) * g.c.target_channels;
  const int row = g.c.rows.first + static_cast<int>(a) * g.c.rows.step;
  const int column = g.c.columns.first + static_cast<int>(b) * g.c.columns.step;
  return (std::int64_t{plane} * g.c.rows.target + row) * g.c.columns.target + column;
}

// Blocks: pixels, channels, group.
template <class Tile>
__global__ void __launch_bounds__(Tile::threads)
    correlation_kernel(CorrelationProblem g, const float* source, const float* w, float* target) {
  const int group = static_cast<int>(blockIdx.z);
  const int first_pixel = static_cast<int>(blockIdx.x) * Tile::n;
  const int first_channel = static_cast<int>(blockIdx.y) * Tile::m;

  typename Tile::Sums sums = {};
  Filters<Tile> left{g, w + group * g.c.w_group, first_channel, {}};
  SeenByPixels<Tile> right(g, source, group, first_pixel);
  sum_products<Tile>(left, right, 0, (g.term_count + Tile::depth - 1) / Tile::depth, sums);

  constexpr int run = Tile::side_by_side;
  struct alignas(run * sizeof(float)) Run {
    float sums[run];
  };
  const int plane = g.c.rows.target * g.c.columns.target;
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
      float* to = target + std::int64_t{channel} * plane;
      if (g.in_fours) {
        Run stored;
#pragma unroll
        for (int q = 0; q < run; ++q) stored.sums[q] = sums[i][j + q];
        *reinterpret_cast<Run*>(to + places[0]) = stored;
      } else {
#pragma unroll
        for (int q = 0; q < run; ++q)
          if (q < present) to[places[q]] = sums[i][j + q];
      }
    }
  }
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
    const int plane = g.c.rows.target * g.c.columns.target;
    g.in_fours = g.c.rows.step == 1 && g.c.columns.step == 1 && plane % 4 == 0 &&
                 reinterpret_cast<std::uintptr_t>(target) % sizeof(float4) == 0;
    with_tile(Tiles{}, Fetch::gathered, g.c.target_channels, g.pixels, g.c.groups, [&](auto tile) {
      const dim3 blocks(blocks_for(g.pixels, tile.n), blocks_for(g.c.target_channels, tile.m),
                        g.c.groups);
      launch(correlation_kernel<decltype(tile)>, {blocks, tile.threads}, g, source, w, target);
    });
  }

 private:
  Terms terms_;
  CorrelationProblem problem_;
};

}  // namespace stepladder::convolution
