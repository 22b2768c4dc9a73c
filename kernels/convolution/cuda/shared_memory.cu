// A tile of the image and the filters in shared memory. naive loads both operands of every product
// from global memory and tests each for padding. Here a block loads the tile and the filters of one
// channel after another, with zeros for padding; the products read shared memory without a test.
//
//   forward, backward_data    block: 8 x 8 pixels of 32 channels, thread: one pixel of 8 channels.
//                             3 loads (one pixel, two float4 of filters) for 8 products
//
//         source [tile rows, tile columns]    filters [taps, 32]    8 accumulators per thread,
//         of one channel, 8 x 8 windows       of one channel        64 pixels x 4 groups of 8
//
//   backward_weights          block: 32 taps of the filters from one channel to 32 others, thread:
//                             4 taps of one filter. 5 loads for 4 products. The block loops over
//                             all tiles of 8 x 8 pixels of dy, and the tile of x that they read.
//
// Expected: 3 to 6 times naive, about a third of the FMA peak; the README has the arithmetic.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels/common/cuda/fast_divisor.hpp"
#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/cuda/shared_memory.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cuda/correlation.hpp"

namespace stepladder::convolution {
namespace {

constexpr int side = 8;  // a tile has side x side pixels
constexpr int pixels = side * side;
constexpr int channels = 32;         // target channels of a block
constexpr int per_thread = 8;        // target channels of a thread
constexpr int pitch = channels + 4;  // between taps: 16-byte aligned, without bank conflicts

// The size of the source tile that 8 x 8 pixels read.
struct SourceTile {
  SourceTile(const CudaAxis& r, const CudaAxis& c)
      : rows(extent(r)), columns(extent(c)), by_columns(static_cast<std::uint32_t>(columns)) {}
  int rows, columns;  // at most 2^24; so large a tile does not fit into shared memory
  FastDivisor by_columns;
  std::int64_t elements() const { return std::int64_t{rows} * columns; }

 private:
  static int extent(const CudaAxis& axis) {
    constexpr std::int64_t most = 1 << 24;
    return static_cast<int>(std::min((side - 1) * std::int64_t{axis.stride} + axis.taps, most));
  }
};

// Loads the tile of one source channel whose corner is at (row, column), which may be outside.
__device__ void load_tile(const SourceTile& tile, const CudaCorrelation& of, const float* channel,
                          int row, int column, float* shared) {
  for (int e = threadIdx.x; e < tile.rows * tile.columns; e += block_threads) {
    const auto [r, c] = tile.by_columns.divide(e);
    const int from_row = row + static_cast<int>(r), from_column = column + static_cast<int>(c);
    const bool valid =
        is_inside(from_row, of.rows.source) && is_inside(from_column, of.columns.source);
    shared[e] = valid ? channel[from_row * of.source.row + from_column * of.source.column] : 0.0F;
  }
}

// Grid: (image, group, 32 channels), tile rows, tile columns.
__global__ void correlate_kernel(CudaCorrelation c, SourceTile tile, FastDivisor taps,
                                 const float* source, const float* w, float* target) {
  auto* filters = dynamic_shared<float>();                              // [taps, pitch]
  float* source_tile = filters + c.rows.taps * c.columns.taps * pitch;  // [tile.rows, tile.columns]
  const int channel_blocks = ceil_div(c.target_channels, channels);
  const int first_channel = static_cast<int>(blockIdx.x) % channel_blocks * channels;
  const int group = static_cast<int>(blockIdx.x) / channel_blocks % c.groups;
  const int image = static_cast<int>(blockIdx.x) / channel_blocks / c.groups;
  const int first_row = static_cast<int>(blockIdx.y) * side;
  const int first_column = static_cast<int>(blockIdx.z) * side;
  const int pixel_row = static_cast<int>(threadIdx.x) % pixels / side;
  const int pixel_column = static_cast<int>(threadIdx.x) % side;
  const int own_channel = static_cast<int>(threadIdx.x) / pixels * per_thread;  // first

  float accumulators[per_thread] = {};
  for (int i = 0; i < c.source_channels; ++i) {
    __syncthreads();  // all threads have used the previous channel
    const float* from =
        source + image * c.source.image + (group * c.source_channels + i) * c.source.channel;
    load_tile(tile, c, from, first_row * c.rows.stride + c.rows.origin,
              first_column * c.columns.stride + c.columns.origin, source_tile);
    for (int e = threadIdx.x; e < c.rows.taps * c.columns.taps * channels; e += block_threads) {
      const auto [k, tap] = taps.divide(e);
      const int r =
          c.rows.kernel_first + static_cast<int>(tap) / c.columns.taps * c.rows.kernel_step;
      const int s =
          c.columns.kernel_first + static_cast<int>(tap) % c.columns.taps * c.columns.kernel_step;
      const int channel = first_channel + static_cast<int>(k);
      filters[tap * pitch + k] = channel < c.target_channels
                                     ? w[group * c.w_group + channel * c.w_target + i * c.w_source +
                                         r * c.w_row + s * c.w_column]
                                     : 0.0F;
    }
    __syncthreads();

    const float* window =
        source_tile + pixel_row * c.rows.stride * tile.columns + pixel_column * c.columns.stride;
    const float* filter = filters + own_channel;
    for (int r = 0; r < c.rows.taps; ++r)
      for (int s = 0; s < c.columns.taps; ++s, filter += pitch) {
        const float value = window[r * tile.columns + s];
        const float4 low = *reinterpret_cast<const float4*>(filter);
        const float4 high = *reinterpret_cast<const float4*>(filter + 4);
        accumulators[0] += value * low.x;
        accumulators[1] += value * low.y;
        accumulators[2] += value * low.z;
        accumulators[3] += value * low.w;
        accumulators[4] += value * high.x;
        accumulators[5] += value * high.y;
        accumulators[6] += value * high.z;
        accumulators[7] += value * high.w;
      }
  }

  const int a = first_row + pixel_row, b = first_column + pixel_column;
  if (a >= c.rows.pixels || b >= c.columns.pixels) return;
  for (int k = 0; k < per_thread; ++k) {
    const int channel = first_channel + own_channel + k;
    if (channel >= c.target_channels) return;
    target[image * c.target.image + (group * c.target_channels + channel) * c.target.channel +
           (c.rows.first + a * c.rows.step) * c.target.row +
           (c.columns.first + b * c.columns.step) * c.target.column] = accumulators[k];
  }
}

constexpr int warps = block_threads / 32;
constexpr int taps_per_thread = 4;
constexpr int taps_per_block = warps * taps_per_thread;
constexpr int dy_pitch = channels + 1;  // between pixels: without bank conflicts

// Grid: (group, 32 target channels), source channel, 32 taps. c is the correlation of forward.
__global__ void backward_weights_kernel(CudaCorrelation c, SourceTile tile, const float* x,
                                        const float* dy, float* dw) {
  auto* dy_tile = dynamic_shared<float>();           // [pixels, dy_pitch]
  float* source_tile = dy_tile + pixels * dy_pitch;  // [tile.rows, tile.columns]
  const int channel_blocks = ceil_div(c.target_channels, channels);
  const int first_channel = static_cast<int>(blockIdx.x) % channel_blocks * channels;
  const int group = static_cast<int>(blockIdx.x) / channel_blocks;
  const int i = static_cast<int>(blockIdx.y);
  const int lane = static_cast<int>(threadIdx.x) % 32;  // the thread's channel in the block
  const int taps = c.rows.taps * c.columns.taps;
  const int first_tap =
      static_cast<int>(blockIdx.z * taps_per_block + threadIdx.x / 32 * taps_per_thread);
  int offsets[taps_per_thread];  // of the taps in the tile; beyond the last tap that of tap 0
  for (int t = 0; t < taps_per_thread; ++t) {
    const int tap = first_tap + t < taps ? first_tap + t : 0;
    offsets[t] = tap / c.columns.taps * tile.columns + tap % c.columns.taps;
  }

  float accumulators[taps_per_thread] = {};
  for (int image = 0; image < c.batch; ++image)
    for (int first_row = 0; first_row < c.rows.pixels; first_row += side)
      for (int first_column = 0; first_column < c.columns.pixels; first_column += side) {
        __syncthreads();  // all threads have used the previous tiles
        const float* from =
            x + image * c.source.image + (group * c.source_channels + i) * c.source.channel;
        load_tile(tile, c, from, first_row * c.rows.stride + c.rows.origin,
                  first_column * c.columns.stride + c.columns.origin, source_tile);
        for (int e = threadIdx.x; e < pixels * channels; e += block_threads) {
          const int pixel = e % pixels, k = e / pixels;
          const int a = first_row + pixel / side, b = first_column + pixel % side;
          const int channel = first_channel + k;
          dy_tile[pixel * dy_pitch + k] =
              a < c.rows.pixels && b < c.columns.pixels && channel < c.target_channels
                  ? dy[image * c.target.image +
                       (group * c.target_channels + channel) * c.target.channel + a * c.target.row +
                       b * c.target.column]
                  : 0.0F;
        }
        __syncthreads();

        for (int pixel = 0; pixel < pixels; ++pixel) {
          const float dy_value = dy_tile[pixel * dy_pitch + lane];
          const float* window = source_tile + pixel / side * c.rows.stride * tile.columns +
                                pixel % side * c.columns.stride;
          for (int t = 0; t < taps_per_thread; ++t)
            accumulators[t] += dy_value * window[offsets[t]];
        }
      }

  const int channel = first_channel + lane;
  if (channel >= c.target_channels) return;
  for (int t = 0; t < taps_per_thread && first_tap + t < taps; ++t)
    dw[group * c.w_group + channel * c.w_target + i * c.w_source + (first_tap + t) * c.w_column] =
        accumulators[t];
}

class SharedMemoryPlan final : public Plan {
 public:
  SharedMemoryPlan(const Problem& p, const Resources&) : p_(p) {
    require_cuda();
    require_int_indices(p);
    Problem axes = p;
    if (p.direction == Direction::backward_weights) axes.direction = Direction::forward;
    correlations_ = correlations(axes);
    for (const CudaCorrelation& c : correlations_) {
      require_shared_memory(shared_bytes(c));
      require_grid(blocks(c));
    }
  }

  void run(const Operands& o) override {
    for (const CudaCorrelation& c : correlations_) {
      const SourceTile tile(c.rows, c.columns);
      const Grid grid{blocks(c), block_threads, shared_bytes(c)};
      if (p_.direction == Direction::backward_weights) {
        launch(backward_weights_kernel, grid, c, tile, o.x, o.y, o.w);
      } else {
        const bool forward = p_.direction == Direction::forward;
        launch(correlate_kernel, grid, c, tile, FastDivisor(std::max(c.taps(), 1)),
               forward ? o.x : o.y, o.w, forward ? o.y : o.x);
      }
    }
  }

 private:
  dim3 blocks(const CudaCorrelation& c) const {
    const unsigned channel_blocks = blocks_for(c.target_channels, channels);
    if (p_.direction == Direction::backward_weights)
      return {channel_blocks * c.groups, static_cast<unsigned>(c.source_channels),
              blocks_for(c.taps(), taps_per_block)};
    return {channel_blocks * c.groups * c.batch, blocks_for(c.rows.pixels, side),
            blocks_for(c.columns.pixels, side)};
  }
  std::size_t shared_bytes(const CudaCorrelation& c) const {
    const std::int64_t other_floats = p_.direction == Direction::backward_weights
                                          ? pixels * dy_pitch
                                          : std::int64_t{c.taps()} * pitch;
    return sizeof(float) *
           static_cast<std::size_t>(other_floats + SourceTile(c.rows, c.columns).elements());
  }

  Problem p_;
  std::vector<CudaCorrelation> correlations_;
};

constexpr VariantInfo info{
    .name = "shared_memory",
    .technique = Technique::cuda,
    .builds_on = "naive",
    .adds = "a tile of the image and the filters in shared memory, several accumulators per thread",
    .idea = Idea::shared_memory,
    .nhwc = true,
    .place = Place::cuda,
};

const Registration registration{info, make_plan<Convolution, SharedMemoryPlan>};

}  // namespace
}  // namespace stepladder::convolution
