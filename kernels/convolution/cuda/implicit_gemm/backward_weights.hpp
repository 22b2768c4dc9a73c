// backward_weights as an implicit GEMM: dw [out channels, CRS] is dy [out channels, pixels of the
// batch] times the transposed im2col matrix of x [pixels, CRS], which is never stored. K is the
// pixels; split-K gives each of `splits` slices of them to blocks of its own.
#pragma once

#include <type_traits>

#include "kernels/common/cuda/fast_divisor.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cuda/implicit_gemm/crs_table.hpp"
#include "kernels/convolution/cuda/implicit_gemm/tile.hpp"

namespace stepladder::convolution {

struct BackwardWeightsParams {
  CudaCorrelation c;      // of forward
  const CrsOffsets* crs;  // [crs_count]
  int crs_count, pixels, splits;
  FastDivisor by_image, by_row;  // by the pixels of an image of dy, of a row
};

// A pixel of dy, and the element of x under the first tap of its window.
struct OutputPixel {
  int dy_offset, x_offset;
  int row, column;  // of x; may be in padding

  static __device__ OutputPixel at(int index, const BackwardWeightsParams& p, int group) {
    const CudaCorrelation& c = p.c;
    const auto [image, within] = p.by_image.divide(index);
    const auto [a, b] = p.by_row.divide(within);
    const int row = static_cast<int>(a) * c.rows.stride + c.rows.origin;
    const int column = static_cast<int>(b) * c.columns.stride + c.columns.origin;
    return {
        static_cast<int>(image) * c.target.image + group * c.target_channels * c.target.channel +
            static_cast<int>(a) * c.target.row + static_cast<int>(b) * c.target.column,
        static_cast<int>(image) * c.source.image + group * c.source_channels * c.source.channel +
            row * c.source.row + column * c.source.column,
        row, column};
  }
  __device__ bool is_inside_at(const CrsOffsets& crs, const BackwardWeightsParams& p) const {
    return is_inside(row + crs.row, p.c.rows.source) &&
           is_inside(column + crs.column, p.c.columns.source);
  }
};

// NCHW: consecutive threads load consecutive pixels.
template <class Tile>
struct DyLoaderNchw {
  static constexpr int stride = Tile::threads / Tile::k, count = Tile::m / stride;
  const BackwardWeightsParams& p;
  const float* dy;
  int group, first_channel;
  float values[count];

  __device__ void load(int step) {
    const int pixel = step * Tile::k + static_cast<int>(threadIdx.x) % Tile::k;
    const int first = first_channel + static_cast<int>(threadIdx.x) / Tile::k;
    const float* from = dy + OutputPixel::at(pixel, p, group).dy_offset;
#pragma unroll
    for (int j = 0; j < count; ++j) {
      const int channel = first + j * stride;
      const bool valid = pixel < p.pixels && channel < p.c.target_channels;
      values[j] = valid ? from[std::int64_t{channel} * p.c.target.channel] : 0.0F;
    }
  }
  __device__ void store(typename Tile::SharedA& shared) const {
    store_k_contiguous<Tile>(values, shared);
  }
};

template <class Tile>
struct XLoaderNchw {
  static constexpr int stride = Tile::threads / Tile::k, count = Tile::n / stride;
  const BackwardWeightsParams& p;
  const float* x;
  int group, first_crs;
  float values[count];

  __device__ void load(int step) {
    const int index = step * Tile::k + static_cast<int>(threadIdx.x) % Tile::k;
    const OutputPixel pixel = OutputPixel::at(index, p, group);
    const int first = first_crs + static_cast<int>(threadIdx.x) / Tile::k;
#pragma unroll
    for (int j = 0; j < count; ++j) {
      values[j] = 0;
      if (index >= p.pixels || first + j * stride >= p.crs_count) continue;
      const CrsOffsets crs = p.crs[first + j * stride];
      if (pixel.is_inside_at(crs, p)) values[j] = x[pixel.x_offset + crs.source];
    }
  }
  __device__ void store(typename Tile::SharedB& shared) const {
    store_k_contiguous<Tile>(values, shared);
  }
};

// NHWC: consecutive threads load consecutive channels, or CRS, of a pixel.
template <class Tile>
struct DyLoaderNhwc {
  static constexpr int stride = Tile::threads / Tile::m, count = Tile::k / stride;
  const BackwardWeightsParams& p;
  const float* dy;
  int group, first_channel;
  float values[count];

  __device__ void load(int step) {
    const int channel = first_channel + static_cast<int>(threadIdx.x) % Tile::m;
    const int first = step * Tile::k + static_cast<int>(threadIdx.x) / Tile::m;
#pragma unroll
    for (int j = 0; j < count; ++j) {
      const int pixel = first + j * stride;
      const bool valid = pixel < p.pixels && channel < p.c.target_channels;
      values[j] = valid ? dy[OutputPixel::at(pixel, p, group).dy_offset + channel] : 0.0F;
    }
  }
  __device__ void store(typename Tile::SharedA& shared) const {
    store_mn_contiguous<Tile, Tile::m>(values, shared);
  }
};

template <class Tile>
struct XLoaderNhwc {
  static constexpr int stride = Tile::threads / Tile::n, count = Tile::k / stride;
  const BackwardWeightsParams& p;
  const float* x;
  int group, first_crs;
  float values[count];

  __device__ void load(int step) {
    const int index = first_crs + static_cast<int>(threadIdx.x) % Tile::n;
    const CrsOffsets crs = p.crs[min(index, p.crs_count - 1)];
    const int first = step * Tile::k + static_cast<int>(threadIdx.x) / Tile::n;
#pragma unroll
    for (int j = 0; j < count; ++j) {
      const OutputPixel pixel = OutputPixel::at(first + j * stride, p, group);
      const bool valid =
          index < p.crs_count && first + j * stride < p.pixels && pixel.is_inside_at(crs, p);
      values[j] = valid ? x[pixel.x_offset + crs.source] : 0.0F;
    }
  }
  __device__ void store(typename Tile::SharedB& shared) const {
    store_mn_contiguous<Tile, Tile::n>(values, shared);
  }
};

// Grid: CRS, channels, (group, split). Split s writes its partial result to result + s · w_count.
template <class Tile, bool channels_last>
__global__ void __launch_bounds__(Tile::threads)
    implicit_gemm_backward_weights_kernel(BackwardWeightsParams p, const float* x, const float* dy,
                                          float* result) {
  const int split = static_cast<int>(blockIdx.z) % p.splits;
  const int group = static_cast<int>(blockIdx.z) / p.splits;
  const int first_crs = static_cast<int>(blockIdx.x) * Tile::n;
  const int first_channel = static_cast<int>(blockIdx.y) * Tile::m;
  const std::int64_t steps = ceil_div(p.pixels, Tile::k);
  const int first = static_cast<int>(steps * split / p.splits);
  const int last = static_cast<int>(steps * (split + 1) / p.splits);

  typename Tile::Accumulators accumulators = {};
  std::conditional_t<channels_last, DyLoaderNhwc<Tile>, DyLoaderNchw<Tile>> a{
      p, dy, group, first_channel, {}};
  std::conditional_t<channels_last, XLoaderNhwc<Tile>, XLoaderNchw<Tile>> b{
      p, x, group, first_crs, {}};
  gemm_main_loop<Tile>(a, b, first, last, accumulators);

  float* dw = result + (std::int64_t{split} * p.c.groups + group) * p.c.w_group;
#pragma unroll
  for (int i = 0; i < Tile::thread_m; ++i)
#pragma unroll
    for (int j = 0; j < Tile::thread_n; ++j) {
      const int channel = first_channel + Tile::row(i), crs = first_crs + Tile::column(j);
      if (channel < p.c.target_channels && crs < p.crs_count)
        dw[channel * p.c.w_target + crs] = accumulators[i][j];
    }
}

// backward_weights, prepared for launch.
template <class Tiles>
class BackwardWeightsGemm {
 public:
  explicit BackwardWeightsGemm(const Problem& p) : BackwardWeightsGemm(as_forward(p)) {}
  void set_splits(int splits) { params_.splits = splits; }
  int pixels() const { return params_.pixels; }
  int splits() const { return params_.splits; }

  // result: [splits, w_count]
  void run(const Operands& o, float* result) const {
    const CudaCorrelation& c = params_.c;
    const int batch = c.groups * params_.splits;
    with_tile(
        Tiles{}, LoadCost::gathered, c.target_channels, params_.crs_count, batch, [&](auto tile) {
          const dim3 blocks(blocks_for(params_.crs_count, tile.n),
                            blocks_for(c.target_channels, tile.m), batch);
          launch(c.channels_last ? implicit_gemm_backward_weights_kernel<decltype(tile), true>
                                 : implicit_gemm_backward_weights_kernel<decltype(tile), false>,
                 {blocks, tile.threads}, params_, o.x, o.y, result);
        });
  }

 private:
  explicit BackwardWeightsGemm(const CudaCorrelation& c)
      : table_(c),
        params_{
            .c = c,
            .crs = table_.data(),
            .crs_count = table_.count(),
            .pixels = static_cast<int>(c.pixels()),
            .splits = 1,
            .by_image = FastDivisor(static_cast<std::uint32_t>(c.rows.pixels * c.columns.pixels)),
            .by_row = FastDivisor(static_cast<std::uint32_t>(c.columns.pixels))} {
    require_gemm_grid(c.target_channels, c.groups);
  }

  static CudaCorrelation as_forward(Problem p) {
    p.direction = Direction::forward;
    return correlations(p).front();
  }

  CrsTable table_;
  BackwardWeightsParams params_;
};

}  // namespace stepladder::convolution
