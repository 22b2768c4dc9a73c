// Several outputs per thread, in vectors. naive loads one float at a time, tests every place for
// padding and divides 64-bit numbers to find its window: its threads have so few bytes under way and
// so much to compute that memory waits. Here, for the two windows of CNNs (2x2 and 3x3, stride 2),
//
//   forward    a thread makes two neighbouring windows: of each row it loads four columns at once,
//              and for 3x3 the one beside them, which the neighbour has in the cache already
//
//                  column   2j−1 | 2j  2j+1  2j+2  2j+3 | 2j+4       j even
//                           pad 1   one load of 16 bytes   3x3 without padding
//
//   backward   a thread makes 2 x 4 elements of dx: it looks once at each of the 2 to 6 windows that
//              reach them and stores 16 bytes per row. No atomics; each dx is written once, and nothing
//              is zeroed first.
//
// Window and padding are known when compiling, so that all tests of places vanish. Rows that do not
// begin at a multiple of 16 bytes take vectors of 8 or 4. Expected: 80 to 90 % of the bandwidth of a
// copy out of cache, 2 to 4 times naive.
//
// The epilogue costs no pass: bias and ReLU happen to what forward stores, ReLU's mask to what backward
// gathers. A window's gradient arrives at one element of dx, so that the bias's gradient, the sum of
// all of a channel, is the sum of the channel's dx, which threads have in registers. For it a
// block has one channel.
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/cuda/fast_divisor.hpp"
#include "kernels/max_pool/cuda/channel_sum.hpp"
#include "kernels/max_pool/max_pool.hpp"

namespace stepladder::max_pool {
namespace {

constexpr int stride = 2;
constexpr int tile = 4;              // columns of x that one thread reads or writes
constexpr int pair = tile / stride;  // columns of y that belong to them

// A row of threads makes a row of y or two rows of dx; `down` such rows make a plane. A group of blocks
// makes all planes; with the epilogue, which has as many groups as channels, those of one.
struct Geometry {
  int height, width, out_height, out_width;
  unsigned groups, threads_each;
  FastDivisor across, down, blocks_each;
  bool pairs_aligned;  // two outputs can be stored at once
};

struct Position {
  unsigned group, block;  // of the group
  unsigned plane, down, across;
  bool exists;  // groups need not fill their last block
};

__device__ Position position_of_thread(const Geometry& g) {
  const auto [group, block] = g.blocks_each.divide(blockIdx.x);
  const unsigned t = block * block_threads + threadIdx.x;
  const auto [row, across] = g.across.divide(t);
  const auto [plane_of_group, down] = g.down.divide(row);
  return {group, block, plane_of_group * g.groups + group, down, across, t < g.threads_each};
}

template <int lanes>
struct alignas(lanes * sizeof(float)) Vector {
  float lane[lanes];
};

__device__ float relu(float value) { return value < 0 ? 0 : value; }

template <int window, int pad, int lanes, Epilogue epilogue>
__global__ void forward_kernel(Geometry g, Operands o) {
  const Position at = position_of_thread(g);
  if (!at.exists) return;
  const int i = static_cast<int>(at.down), j = static_cast<int>(at.across) * pair;
  const float* x = o.x + std::int64_t{at.plane} * g.height * g.width;

  const float bias = epilogue == Epilogue::bias_relu ? o.bias[at.group] : 0;

  // Columns 2j − 1 to 2j + 4; −∞, which never wins, outside the plane. All loads are under way before
  // the first value is compared.
  constexpr int columns = 1 + tile + 1;
  float values[window][columns];
#pragma unroll
  for (int r = 0; r < window; ++r) {
#pragma unroll
    for (int c = 0; c < columns; ++c) values[r][c] = -INFINITY;
    const int row = i * stride - pad + r, column = j * stride;
    if (row < 0 || row >= g.height) continue;
    const float* line = x + row * g.width;
    if (pad == 1 && column > 0) values[r][0] = line[column - 1];
#pragma unroll
    for (int c = 0; c < tile; c += lanes)
      if (column + c < g.width) {
        const auto loaded = *reinterpret_cast<const Vector<lanes>*>(line + column + c);
#pragma unroll
        for (int lane = 0; lane < lanes; ++lane) values[r][1 + c + lane] = loaded.lane[lane];
      }
    if (window - pad == 3 && column + tile < g.width) values[r][1 + tile] = line[column + tile];
  }

  float best[pair];
  int place[pair] = {};
#pragma unroll
  for (int k = 0; k < pair; ++k) {
    best[k] = -INFINITY;
#pragma unroll
    for (int r = 0; r < window; ++r)
#pragma unroll
      for (int s = 0; s < window; ++s) {
        const float value = values[r][1 - pad + k * stride + s];
        if (value > best[k]) best[k] = value, place[k] = r * window + s;
      }
    if (epilogue == Epilogue::bias_relu) best[k] = relu(best[k] + bias);
  }

  const std::int64_t first = (std::int64_t{at.plane} * g.out_height + i) * g.out_width + j;
  if (g.pairs_aligned) {
    *reinterpret_cast<Vector<pair>*>(o.y + first) = {best[0], best[1]};
    *reinterpret_cast<std::uint16_t*>(o.argmax + first) =
        static_cast<std::uint16_t>(place[0] | place[1] << 8);
  } else {
    for (int k = 0; k < pair; ++k)
      if (j + k < g.out_width) {
        o.y[first + k] = best[k];
        o.argmax[first + k] = static_cast<std::uint8_t>(place[k]);
      }
  }
}

// What backward loads of a window; nothing beyond the plane.
struct Window {
  int place = -1;
  float dy = 0, y = 0;
};

// A thread's dx, gathered and stored; returns its sum. All loads are under way before the first place
// is looked at.
template <int window, int pad, int lanes, Epilogue epilogue>
__device__ float make_tile(const Geometry& g, const Operands& o, const Position& at) {
  const int row = static_cast<int>(at.down) * stride, column = static_cast<int>(at.across) * tile;
  const std::int64_t windows = std::int64_t{at.plane} * g.out_height * g.out_width;

  // Window (row + pad) / 2 begins at this row or one above. One window further up reaches down to
  // the row only with 3 rows and no padding; one further down begins in the tile only with padding.
  constexpr int before = window - pad == 3 ? 1 : 0;
  constexpr int rows = before + 1 + pad, columns = before + pair + pad;
  Window seen[rows][columns];
#pragma unroll
  for (int m = 0; m < rows; ++m)
#pragma unroll
    for (int n = 0; n < columns; ++n) {
      const int i = row / stride - before + m, j = column / stride - before + n;
      if (i < 0 || i >= g.out_height || j < 0 || j >= g.out_width) continue;
      const std::int64_t from = windows + i * g.out_width + j;
      seen[m][n].place = o.argmax[from];
      seen[m][n].dy = o.y[from];
      if (epilogue == Epilogue::bias_relu) seen[m][n].y = o.forward_y[from];
    }

  float dx[stride][tile] = {};
#pragma unroll
  for (int m = 0; m < rows; ++m)
#pragma unroll
    for (int n = 0; n < columns; ++n) {
      const Window& from = seen[m][n];
      const float gradient = epilogue == Epilogue::none || from.y > 0 ? from.dy : 0;
#pragma unroll
      for (int h = 0; h < stride; ++h)
#pragma unroll
        for (int c = 0; c < tile; ++c) {
          const int r = h + pad - (m - before) * stride;  // place in the window
          const int s = c + pad - (n - before) * stride;
          if (0 <= r && r < window && 0 <= s && s < window && from.place == r * window + s)
            dx[h][c] += gradient;
        }
    }

  float* x = o.x + std::int64_t{at.plane} * g.height * g.width;
  float sum = 0;
#pragma unroll
  for (int h = 0; h < stride; ++h)
#pragma unroll
    for (int c = 0; c < tile; c += lanes)
      if (row + h < g.height && column + c < g.width) {
        Vector<lanes> stored;
#pragma unroll
        for (int lane = 0; lane < lanes; ++lane) {
          stored.lane[lane] = dx[h][c + lane];
          sum += dx[h][c + lane];
        }
        *reinterpret_cast<Vector<lanes>*>(x + (row + h) * g.width + column + c) = stored;
      }
  return sum;
}

template <int window, int pad, int lanes, Epilogue epilogue>
__global__ void backward_kernel(Geometry g, Operands o, ChannelSum channels) {
  const Position at = position_of_thread(g);
  const float sum = at.exists ? make_tile<window, pad, lanes, epilogue>(g, o, at) : 0;
  if constexpr (epilogue == Epilogue::bias_relu) channels.add(at.group, at.block, sum, o.dbias);
}

template <int value>
using Constant = std::integral_constant<int, value>;

// Calls function(window, pad) with what is known when compiling.
template <class Function>
void with_window(const Problem& p, const Function& function) {
  if (p.window_h == 2 && p.pad_h == 0) return function(Constant<2>{}, Constant<0>{});
  if (p.window_h == 2) return function(Constant<2>{}, Constant<1>{});
  if (p.pad_h == 0) return function(Constant<3>{}, Constant<0>{});
  return function(Constant<3>{}, Constant<1>{});
}

// Likewise function(lanes), for the longest vectors that rows of x allow.
template <class Function>
void with_lanes(const float* x, std::int64_t width, const Function& function) {
  const std::uintptr_t starts = reinterpret_cast<std::uintptr_t>(x) | width * sizeof(float);
  if (starts % sizeof(Vector<4>) == 0) return function(Constant<4>{});
  if (starts % sizeof(Vector<2>) == 0) return function(Constant<2>{});
  return function(Constant<1>{});
}

// Likewise function(epilogue).
template <class Function>
void with_epilogue(const Problem& p, const Function& function) {
  if (p.epilogue == Epilogue::none)
    return function(std::integral_constant<Epilogue, Epilogue::none>{});
  return function(std::integral_constant<Epilogue, Epilogue::bias_relu>{});
}

// Throws Unsupported for what the kernels do not take.
Geometry geometry_of(const Problem& p) {
  const bool square = p.window_h == p.window_w && p.pad_h == p.pad_w;
  const bool usual = p.stride_h == stride && p.stride_w == stride && p.pad_h <= 1 &&
                     (p.window_h == 2 || p.window_h == 3);
  if (!square || !usual)
    throw Unsupported("takes windows of 2x2 and 3x3 with stride 2 and padding 0 or 1");
  if (p.x_count() > std::numeric_limits<std::int32_t>::max())
    throw Unsupported("takes no more than 2147483647 elements of x");

  const bool forward = p.direction == Direction::forward;
  const std::int64_t across = forward ? (p.out_w() + pair - 1) / pair : (p.width + tile - 1) / tile;
  const std::int64_t down = forward ? p.out_h() : (p.height + stride - 1) / stride;
  const std::int64_t groups = p.epilogue == Epilogue::none ? 1 : p.channels;
  const std::int64_t threads_each = p.planes() / groups * down * across;
  return {.height = static_cast<int>(p.height),
          .width = static_cast<int>(p.width),
          .out_height = static_cast<int>(p.out_h()),
          .out_width = static_cast<int>(p.out_w()),
          .groups = static_cast<unsigned>(groups),
          .threads_each = static_cast<unsigned>(threads_each),
          .across = FastDivisor(static_cast<std::uint32_t>(across)),
          .down = FastDivisor(static_cast<std::uint32_t>(down)),
          .blocks_each = FastDivisor(blocks_for(threads_each)),
          .pairs_aligned = false};
}

class VectorizedPlan final : public Plan {
 public:
  explicit VectorizedPlan(const Problem& p)
      : p_(p),
        geometry_(geometry_of(p)),
        sums_(is_forward() || p.epilogue == Epilogue::none ? 0 : p.channels,
              blocks_for(geometry_.threads_each)) {}

  void run(const Operands& o) override {
    Geometry g = geometry_;
    g.pairs_aligned = g.out_width % pair == 0 &&
                      reinterpret_cast<std::uintptr_t>(o.y) % sizeof(Vector<pair>) == 0 &&
                      reinterpret_cast<std::uintptr_t>(o.argmax) % pair == 0;
    const Grid grid{g.groups * blocks_for(g.threads_each), block_threads};
    with_window(p_, [&](auto window, auto pad) {
      with_lanes(o.x, p_.width, [&](auto lanes) {
        with_epilogue(p_, [&](auto epilogue) {
          if (is_forward())
            launch(forward_kernel<window(), pad(), lanes(), epilogue()>, grid, g, o);
          else
            launch(backward_kernel<window(), pad(), lanes(), epilogue()>, grid, g, o, sums_.sum());
        });
      });
    });
  }

 private:
  bool is_forward() const { return p_.direction == Direction::forward; }

  Problem p_;
  Geometry geometry_;
  ChannelSumMemory sums_;
};

std::unique_ptr<Plan> make(const Problem& problem, const Resources&) {
  require_cuda();
  return std::make_unique<VectorizedPlan>(problem);
}

constexpr VariantInfo info{
    .name = "vectorized",
    .technique = Technique::cuda,
    .builds_on = "naive",
    .adds =
        "2 outputs or 2 x 4 elements of dx per thread, in vectors of 16 bytes; windows known "
        "when compiling",
    .place = Place::cuda,
    .epilogue = true,
};

const Registration registration{info, make};

}  // namespace
}  // namespace stepladder::max_pool
