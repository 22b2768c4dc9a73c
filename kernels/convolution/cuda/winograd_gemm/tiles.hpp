// The Winograd transforms on a GPU: from images and filters to one matrix per position of the tile,
// and back from such matrices:
//
//     images   [images, planes, height, width]   <->   [positions, planes, tiles]
//     filters  [filters, taps]                   <->   [positions, rows, columns]
//
// A plane is a channel of a group; the planes of a group are consecutive rows. A thread transforms
// one tile or one filter in registers. Consecutive threads transform neighbours, which are adjacent
// in the matrices. Rows are padded to vectors of four floats. Only .cu files include this.
//
// In NHWC, elements of different planes are adjacent. There 64 threads transform 8 tiles of 8
// planes, and both the image and the matrices are accessed in segments of 32 bytes.
#pragma once

#include "kernels/common/cuda/fast_divisor.hpp"
#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cuda/correlation.hpp"
#include "kernels/convolution/cuda/winograd_gemm/batched_gemm.hpp"
#include "kernels/convolution/winograd_points.hpp"

namespace stepladder::convolution {

// The size of the matrix that belongs to each tile position.
struct PositionMatrices {
  PositionMatrices(std::int64_t row_count, std::int64_t column_count)
      : rows(static_cast<int>(row_count)), columns(static_cast<int>(column_count)) {
    constexpr std::int64_t most = 1 << 27;  // then the batched GEMM has less than 2^31 blocks
    if (size() > most) throw Unsupported("supports at most 134217728 tiles and filters");
    by_pitch = FastDivisor(static_cast<std::uint32_t>(pitch()));
  }
  STEPLADDER_HOST_DEVICE int pitch() const { return padded(columns); }
  STEPLADDER_HOST_DEVICE std::int64_t size() const { return std::int64_t{rows} * pitch(); }

  int rows, columns;
  FastDivisor by_pitch;
};

// The tiles of outputs x outputs pixels that cover each image.
struct ImageTiles {
  ImageTiles(std::int64_t height, std::int64_t width, std::int64_t outputs_)
      : outputs(static_cast<int>(outputs_)),
        per_image(static_cast<int>(ceil_div(height, outputs) * ceil_div(width, outputs))),
        by_image(static_cast<std::uint32_t>(per_image)),
        by_row(static_cast<std::uint32_t>(ceil_div(width, outputs))) {}
  int outputs, per_image;
  FastDivisor by_image, by_row;

  struct Origin {
    int image, row, column;  // of the tile's first output
  };
  __device__ Origin origin(unsigned tile) const {
    const auto [image, within] = by_image.divide(tile);
    const auto [row, column] = by_row.divide(within);
    return {static_cast<int>(image), static_cast<int>(row) * outputs,
            static_cast<int>(column) * outputs};
  }
};

struct Planes {
  int height, width;
  int top, left;  // offset of a tile's first element from its first output
  CudaStrides strides;
};

// Maps threads to elements of [planes, tiles], in patches of planes x tiles.
class TilePatches {
 public:
  TilePatches(const PositionMatrices& m, bool channels_last)
      : planes_(channels_last ? 8 : 1),
        tiles_(channels_last ? 8 : 4),
        across_(ceil_div(m.pitch(), tiles_)),
        down_(ceil_div(m.rows, planes_)),
        by_across_(static_cast<std::uint32_t>(across_)) {}

  std::int64_t threads() const { return std::int64_t{down_} * across_ * planes_ * tiles_; }

  struct Element {
    int plane, tile;
  };
  __device__ Element element(std::int64_t thread) const {
    const int within = static_cast<int>(thread % (planes_ * tiles_));
    const auto [down, across] =
        by_across_.divide(static_cast<std::uint32_t>(thread / (planes_ * tiles_)));
    return {static_cast<int>(down) * planes_ + within / tiles_,
            static_cast<int>(across) * tiles_ + within % tiles_};
  }

 private:
  int planes_, tiles_;  // of a patch
  int across_, down_;   // number of patches
  FastDivisor by_across_;
};

// The transforms of winograd_points.hpp, from `from` values to `to` values.
template <int pairs>
struct InputTransform {
  using Points = WinogradPoints<float, pairs>;
  static constexpr int from = Points::tile, to = Points::tile;
  __device__ static void apply(const float (&d)[from], float (&v)[to]) { Points::source(d, v); }
};
template <int pairs, int n>
struct FilterTransform {
  using Points = WinogradPoints<float, pairs>;
  static constexpr int from = n, to = Points::tile;
  __device__ static void apply(const float (&g)[from], float (&v)[to]) { Points::evaluate(g, v); }
};
template <int pairs, int n>
struct OutputTransform {
  using Points = WinogradPoints<float, pairs>;
  static constexpr int from = Points::tile, to = n;
  __device__ static void apply(const float (&v)[from], float (&s)[to]) { Points::combine(v, s); }
};

// In two dimensions: along each row as it is loaded, then along each column before it is stored.
template <class Transform, class Load, class Store>
__device__ void transform_tile(const Load& load, const Store& store) {
  constexpr int from = Transform::from, to = Transform::to;
  float half[from][to];
#pragma unroll
  for (int i = 0; i < from; ++i) {
    float row[from];
#pragma unroll
    for (int j = 0; j < from; ++j) row[j] = load(i, j);
    Transform::apply(row, half[i]);
  }
#pragma unroll
  for (int j = 0; j < to; ++j) {
    float column[from], result[to];
#pragma unroll
    for (int i = 0; i < from; ++i) column[i] = half[i][j];
    Transform::apply(column, result);
#pragma unroll
    for (int i = 0; i < to; ++i) store(i, j, result[i]);
  }
}

// planes: [images, m.rows, height, width] or, in NHWC, [images, height, width, m.rows]
// tiles:  [to x to, m]
template <class Transform>
__global__ void __launch_bounds__(block_threads)
    planes_to_tiles_kernel(PositionMatrices m, TilePatches patches, ImageTiles t, Planes p,
                           int images, const float* planes, float* tiles) {
  const auto [plane, tile] = patches.element(thread_index());
  if (plane >= m.rows || tile >= m.pitch()) return;
  const std::int64_t index = std::int64_t{plane} * m.pitch() + tile;
  const ImageTiles::Origin origin = t.origin(tile);
  const int top = origin.row + p.top, left = origin.column + p.left;
  const float* from =
      planes + std::int64_t{origin.image} * p.strides.image + plane * p.strides.channel;
  transform_tile<Transform>(
      [&](int i, int j) {
        const bool valid =
            origin.image < images && is_inside(top + i, p.height) && is_inside(left + j, p.width);
        return valid ? from[(top + i) * p.strides.row + (left + j) * p.strides.column] : 0.0F;
      },
      [&](int i, int j, float value) {
        tiles[(i * Transform::to + j) * m.size() + index] = value;
      });
}

// tiles: [from x from, m] -> planes, as above
template <class Transform>
__global__ void __launch_bounds__(block_threads)
    tiles_to_planes_kernel(PositionMatrices m, TilePatches patches, ImageTiles t, Planes p,
                           int images, const float* tiles, float* planes) {
  const auto [plane, tile] = patches.element(thread_index());
  if (plane >= m.rows || tile >= m.pitch()) return;
  const std::int64_t index = std::int64_t{plane} * m.pitch() + tile;
  const ImageTiles::Origin origin = t.origin(tile);
  if (origin.image >= images) return;
  float* to = planes + std::int64_t{origin.image} * p.strides.image + plane * p.strides.channel;
  transform_tile<Transform>(
      [&](int i, int j) { return tiles[(i * Transform::from + j) * m.size() + index]; },
      [&](int i, int j, float value) {
        const int row = origin.row + i, column = origin.column + j;
        if (row < p.height && column < p.width)
          to[row * p.strides.row + column * p.strides.column] = value;
      });
}

// w -> filters: [to x to, m], m: [(group, source channel), target channel]
template <class Transform>
__global__ void __launch_bounds__(block_threads)
    filters_to_matrices_kernel(PositionMatrices m, CudaCorrelation c, const float* w,
                               float* filters) {
  const std::int64_t index = thread_index();
  if (index >= m.size()) return;
  const auto [row, channel] = m.by_pitch.divide(static_cast<std::uint32_t>(index));
  const int group = static_cast<int>(row) / c.source_channels;
  const int source_channel = static_cast<int>(row) % c.source_channels;
  const bool valid = static_cast<int>(channel) < c.target_channels;
  const float* filter = w + group * c.w_group + source_channel * c.w_source +
                        (valid ? static_cast<int>(channel) : 0) * c.w_target;
  transform_tile<Transform>(
      [&](int i, int j) {
        const int r = c.rows.kernel_first + i * c.rows.kernel_step;
        const int s = c.columns.kernel_first + j * c.columns.kernel_step;
        return valid ? filter[r * c.w_row + s * c.w_column] : 0.0F;
      },
      [&](int i, int j, float value) {
        filters[(i * Transform::to + j) * m.size() + index] = value;
      });
}

// Adds the split-K partials and transforms the sum to dw. partials: [splits, from x from, m],
// m: [out channel, in channel of its group]; c is the correlation of forward.
template <class Transform>
__global__ void __launch_bounds__(block_threads)
    matrices_to_filters_kernel(PositionMatrices m, CudaCorrelation c, int splits,
                               const float* partials, float* dw) {
  constexpr int side = Transform::from;
  const std::int64_t index = thread_index();
  if (index >= m.size()) return;
  const auto [row, channel] = m.by_pitch.divide(static_cast<std::uint32_t>(index));
  if (static_cast<int>(channel) >= m.columns) return;
  float* filter = dw + std::int64_t{row} * c.w_target + channel * c.w_source;
  transform_tile<Transform>(
      [&](int i, int j) {
        const float* at = partials + (i * side + j) * m.size() + index;
        float sum = *at;
        for (int split = 1; split < splits; ++split) sum += at[split * side * side * m.size()];
        return sum;
      },
      [&](int i, int j, float value) { filter[i * c.w_row + j * c.w_column] = value; });
}

}  // namespace stepladder::convolution
