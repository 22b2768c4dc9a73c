// backward_weights as a matrix product: dw [out channels, terms] is dy [out channels, pixels of the
// batch] times the transpose of x as the filters see it [terms, pixels], which is never written down.
// The sum over pixels can be cut into parts, each by blocks of its own.
#pragma once

#include <type_traits>

#include "kernels/common/cuda/fast_divisor.hpp"
#include "kernels/convolution/cuda/implicit_gemm/terms.hpp"
#include "kernels/convolution/cuda/implicit_gemm/tile.hpp"

namespace stepladder::convolution {

// Forward's correlation, for which dw is the gradient.
struct GradientProblem {
  Correlation c;
  const Term* terms;
  int term_count, pixels, parts;
  FastDivisor image, row;  // pixels of an image of dy, of a row
};

// A pixel of dy, and where the filters begin to see x through it.
struct GradientPixel {
  int dy, x, row, column;  // of x; dy and x are places in the images, that of x perhaps in padding

  static __device__ GradientPixel number(int index, const GradientProblem& g, int group) {
    const Correlation& c = g.c;
    const auto [image, within] = g.image.divide(index);
    const auto [a, b] = g.row.divide(within);
    const int row = static_cast<int>(a) * c.rows.stride + c.rows.origin;
    const int column = static_cast<int>(b) * c.columns.stride + c.columns.origin;
    return {
        static_cast<int>(image) * c.target.image + group * c.target_channels * c.target.channel +
            static_cast<int>(a) * c.target.row + static_cast<int>(b) * c.target.column,
        static_cast<int>(image) * c.source.image + group * c.source_channels * c.source.channel +
            row * c.source.row + column * c.source.column,
        row, column};
  }
  __device__ bool is_seen(const GradientProblem& g, const Term& term) const {
    return inside(row + term.row, g.c.rows.source) &&
           inside(column + term.column, g.c.columns.source);
  }
};

// NCHW: of a step's `depth` pixels, lanes next to each other take pixels next to each other.
template <class Tile>
struct Gradients {  // dy
  static constexpr int stride = Tile::threads / Tile::depth, count = Tile::m / stride;
  const GradientProblem& g;
  const float* dy;
  int group, first_channel;
  float values[count];

  __device__ void fetch(int step) {
    const int pixel = step * Tile::depth + static_cast<int>(threadIdx.x) % Tile::depth;
    const int channel = first_channel + static_cast<int>(threadIdx.x) / Tile::depth;
    const float* from = dy + GradientPixel::number(pixel, g, group).dy;
#pragma unroll
    for (int j = 0; j < count; ++j) {
      const int c = channel + j * stride;
      const bool there = pixel < g.pixels && c < g.c.target_channels;
      values[j] = there ? from[std::int64_t{c} * g.c.target.channel] : 0.0F;
    }
  }
  __device__ void put(typename Tile::LeftStep& shared) const {
    put_along_depth<Tile>(values, shared);
  }
};

template <class Tile>
struct SeenByFilters {  // x
  static constexpr int stride = Tile::threads / Tile::depth, count = Tile::n / stride;
  const GradientProblem& g;
  const float* x;
  int group, first_term;
  float values[count];

  __device__ void fetch(int step) {
    const int index = step * Tile::depth + static_cast<int>(threadIdx.x) % Tile::depth;
    const GradientPixel pixel = GradientPixel::number(index, g, group);
    const int first = first_term + static_cast<int>(threadIdx.x) / Tile::depth;
#pragma unroll
    for (int j = 0; j < count; ++j) {
      values[j] = 0;
      if (index >= g.pixels || first + j * stride >= g.term_count) continue;
      const Term term = g.terms[first + j * stride];
      if (pixel.is_seen(g, term)) values[j] = x[pixel.x + term.source];
    }
  }
  __device__ void put(typename Tile::RightStep& shared) const {
    put_along_depth<Tile>(values, shared);
  }
};

// NHWC: lanes next to each other take the channels, or terms, of a pixel, which lie together.
template <class Tile>
struct GradientChannels {  // dy
  static constexpr int stride = Tile::threads / Tile::m, count = Tile::depth / stride;
  const GradientProblem& g;
  const float* dy;
  int group, first_channel;
  float values[count];

  __device__ void fetch(int step) {
    const int channel = first_channel + static_cast<int>(threadIdx.x) % Tile::m;
    const int first = step * Tile::depth + static_cast<int>(threadIdx.x) / Tile::m;
#pragma unroll
    for (int j = 0; j < count; ++j) {
      const int pixel = first + j * stride;
      const bool there = pixel < g.pixels && channel < g.c.target_channels;
      values[j] = there ? dy[GradientPixel::number(pixel, g, group).dy + channel] : 0.0F;
    }
  }
  __device__ void put(typename Tile::LeftStep& shared) const {
    put_across_depth<Tile, Tile::m>(values, shared);
  }
};

template <class Tile>
struct TermsOfPixels {  // x
  static constexpr int stride = Tile::threads / Tile::n, count = Tile::depth / stride;
  const GradientProblem& g;
  const float* x;
  int group, first_term;
  float values[count];

  __device__ void fetch(int step) {
    const int k = first_term + static_cast<int>(threadIdx.x) % Tile::n;
    const Term term = g.terms[min(k, g.term_count - 1)];
    const int first = step * Tile::depth + static_cast<int>(threadIdx.x) / Tile::n;
#pragma unroll
    for (int j = 0; j < count; ++j) {
      const GradientPixel pixel = GradientPixel::number(first + j * stride, g, group);
      const bool there =
          k < g.term_count && first + j * stride < g.pixels && pixel.is_seen(g, term);
      values[j] = there ? x[pixel.x + term.source] : 0.0F;
    }
  }
  __device__ void put(typename Tile::RightStep& shared) const {
    put_across_depth<Tile, Tile::n>(values, shared);
  }
};

// Blocks: terms, channels, (group, part). Part p of the sum goes to result + p · w_count.
template <class Tile, bool channels_last>
__global__ void __launch_bounds__(Tile::threads)
    gradient_kernel(GradientProblem g, const float* x, const float* dy, float* result) {
  const int part = static_cast<int>(blockIdx.z) % g.parts;
  const int group = static_cast<int>(blockIdx.z) / g.parts;
  const int first_term = static_cast<int>(blockIdx.x) * Tile::n;
  const int first_channel = static_cast<int>(blockIdx.y) * Tile::m;
  const std::int64_t steps = (g.pixels + Tile::depth - 1) / Tile::depth;
  const int first = static_cast<int>(steps * part / g.parts);
  const int last = static_cast<int>(steps * (part + 1) / g.parts);

  typename Tile::Sums sums = {};
  std::conditional_t<channels_last, GradientChannels<Tile>, Gradients<Tile>> left{
      g, dy, group, first_channel, {}};
  std::conditional_t<channels_last, TermsOfPixels<Tile>, SeenByFilters<Tile>> right{
      g, x, group, first_term, {}};
  sum_products<Tile>(left, right, first, last, sums);

  float* dw = result + (std::int64_t{part} * g.c.groups + group) * g.c.w_group;
#pragma unroll
  for (int i = 0; i < Tile::sums_m; ++i)
#pragma unroll
    for (int j = 0; j < Tile::sums_n; ++j) {
      const int channel = first_channel + Tile::row(i), term = first_term + Tile::column(j);
      if (channel < g.c.target_channels && term < g.term_count)
        dw[channel * g.c.w_target + term] = sums[i][j];
    }
}

// The product's sizes and table, ready to launch.
template <class Tiles>
class WeightGradient {
 public:
  explicit WeightGradient(const Problem& p) : WeightGradient(as_forward(p)) {}
  void split(int parts) { problem_.parts = parts; }
  int pixels() const { return problem_.pixels; }
  int parts() const { return problem_.parts; }

  // result: [parts, w_count]
  void run(const Operands& o, float* result) const {
    const Correlation& c = problem_.c;
    const int slices = c.groups * problem_.parts;
    with_tile(Tiles{}, Fetch::gathered, c.target_channels, problem_.term_count, slices,
              [&](auto tile) {
                const dim3 blocks(blocks_for(problem_.term_count, tile.n),
                                  blocks_for(c.target_channels, tile.m), slices);
                launch(c.channels_last ? gradient_kernel<decltype(tile), true>
                                       : gradient_kernel<decltype(tile), false>,
                       {blocks, tile.threads}, problem_, o.x, o.y, result);
              });
  }

 private:
  explicit WeightGradient(const Correlation& c)
      : terms_(c),
        problem_{.c = c,
                 .terms = terms_.data(),
                 .term_count = terms_.count(),
                 .pixels = static_cast<int>(c.pixels()),
                 .parts = 1,
                 .image = FastDivisor(static_cast<std::uint32_t>(c.rows.pixels * c.columns.pixels)),
                 .row = FastDivisor(static_cast<std::uint32_t>(c.columns.pixels))} {}

  static Correlation as_forward(Problem p) {
    p.direction = Direction::forward;
    return correlations(p).front();
  }

  Terms terms_;
  GradientProblem problem_;
};

}  // namespace stepladder::convolution
