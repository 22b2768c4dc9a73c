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
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/common/cuda_plan.hpp"
#include "kernels/common/fast_divisor.hpp"
#include "kernels/max_pool/max_pool.hpp"

namespace stepladder::max_pool {
namespace {

constexpr int stride = 2;
constexpr int tile = 4;              // columns of x that one thread reads or writes
constexpr int pair = tile / stride;  // columns of y that belong to them

// A row of threads makes a row of y or two rows of dx; `down` such rows make a plane.
struct Geometry {
  int height, width, out_height, out_width;
  unsigned threads;
  FastDivisor across, down;
  bool pairs_aligned;  // two outputs can be stored at once
};

template <int lanes>
struct alignas(lanes * sizeof(float)) Vector {
  float lane[lanes];
};

template <int window, int pad, int lanes>
__global__ void forward_kernel(Geometry g, Operands o) {
  const unsigned t = blockIdx.x * block_threads + threadIdx.x;
  if (t >= g.threads) return;
  const auto [row_of_y, across] = g.across.divide(t);
  const auto [plane, i] = g.down.divide(row_of_y);
  const int j = static_cast<int>(across) * pair;
  const float* x = o.x + std::int64_t{plane} * g.height * g.width;

  float best[pair];
  int place[pair] = {};
  for (float& value : best) value = -INFINITY;
#pragma unroll
  for (int r = 0; r < window; ++r) {
    const int row = static_cast<int>(i) * stride - pad + r;
    if (row < 0 || row >= g.height) continue;
    const float* line = x + row * g.width;
    float
        values[1 + tile + 1];  // columns 2j − 1 to 2j + 4; −∞, which never wins, outside the plane
#pragma unroll
    for (int c = 0; c < 1 + tile + 1; ++c) values[c] = -INFINITY;
    const int column = j * stride;
    if (pad == 1 && column > 0) values[0] = line[column - 1];
#pragma unroll
    for (int c = 0; c < tile; c += lanes)
      if (column + c < g.width) {
        const auto loaded = *reinterpret_cast<const Vector<lanes>*>(line + column + c);
#pragma unroll
        for (int lane = 0; lane < lanes; ++lane) values[1 + c + lane] = loaded.lane[lane];
      }
    if (window - pad == 3 && column + tile < g.width) values[1 + tile] = line[column + tile];
#pragma unroll
    for (int k = 0; k < pair; ++k)
#pragma unroll
      for (int s = 0; s < window; ++s) {
        const float value = values[1 - pad + k * stride + s];
        if (value > best[k]) best[k] = value, place[k] = r * window + s;
      }
  }

  const std::int64_t first = std::int64_t{row_of_y} * g.out_width + j;
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

template <int window, int pad, int lanes>
__global__ void backward_kernel(Geometry g, Operands o) {
  const unsigned t = blockIdx.x * block_threads + threadIdx.x;
  if (t >= g.threads) return;
  const auto [rows_of_x, across] = g.across.divide(t);
  const auto [plane, down] = g.down.divide(rows_of_x);
  const int row = static_cast<int>(down) * stride, column = static_cast<int>(across) * tile;
  const std::int64_t windows = std::int64_t{plane} * g.out_height * g.out_width;

  // Window (row + pad) / 2 begins at this row or one above. One window further up reaches down to
  // the row only with 3 rows and no padding; one further down begins in the tile only with padding.
  constexpr int before = window - pad == 3 ? 1 : 0;
  float dx[stride][tile] = {};
#pragma unroll
  for (int di = -before; di < 1 + pad; ++di) {
    const int i = row / stride + di;
    if (i < 0 || i >= g.out_height) continue;
#pragma unroll
    for (int dj = -before; dj < pair + pad; ++dj) {
      const int j = column / stride + dj;
      if (j < 0 || j >= g.out_width) continue;
      const std::int64_t from = windows + i * g.out_width + j;
      const float dy = o.y[from];
      const int place = o.argmax[from];
#pragma unroll
      for (int h = 0; h < stride; ++h)
#pragma unroll
        for (int c = 0; c < tile; ++c) {
          const int r = h + pad - di * stride, s = c + pad - dj * stride;  // place in the window
          if (0 <= r && r < window && 0 <= s && s < window && place == r * window + s)
            dx[h][c] += dy;
        }
    }
  }

  float* x = o.x + std::int64_t{plane} * g.height * g.width;
#pragma unroll
  for (int h = 0; h < stride; ++h)
#pragma unroll
    for (int c = 0; c < tile; c += lanes)
      if (row + h < g.height && column + c < g.width) {
        Vector<lanes> stored;
#pragma unroll
        for (int lane = 0; lane < lanes; ++lane) stored.lane[lane] = dx[h][c + lane];
        *reinterpret_cast<Vector<lanes>*>(x + (row + h) * g.width + column + c) = stored;
      }
}

template <int value>
using Constant = std::integral_constant<int, value>;

// Calls function(window, pad) with numbers that are known when compiling.
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

class VectorizedPlan final : public Plan {
 public:
  VectorizedPlan(const Problem& p, const Resources&) : p_(p) {
    require_cuda();
    const bool square = p.window_h == p.window_w && p.pad_h == p.pad_w;
    const bool usual = p.stride_h == stride && p.stride_w == stride && p.pad_h <= 1 &&
                       (p.window_h == 2 || p.window_h == 3);
    if (!square || !usual)
      throw Unsupported("takes windows of 2x2 and 3x3 with stride 2 and padding 0 or 1");
    if (p.x_count() > std::numeric_limits<std::int32_t>::max())
      throw Unsupported("takes no more than 2147483647 elements of x");

    const bool forward = p.direction == Direction::forward;
    const std::int64_t across =
        forward ? (p.out_w() + pair - 1) / pair : (p.width + tile - 1) / tile;
    const std::int64_t down = forward ? p.out_h() : (p.height + stride - 1) / stride;
    geometry_ = {.height = static_cast<int>(p.height),
                 .width = static_cast<int>(p.width),
                 .out_height = static_cast<int>(p.out_h()),
                 .out_width = static_cast<int>(p.out_w()),
                 .threads = static_cast<unsigned>(p.planes() * down * across),
                 .across = FastDivisor(static_cast<std::uint32_t>(across)),
                 .down = FastDivisor(static_cast<std::uint32_t>(down)),
                 .pairs_aligned = false};
  }

  void run(const Operands& o) override {
    Geometry g = geometry_;
    g.pairs_aligned = g.out_width % pair == 0 &&
                      reinterpret_cast<std::uintptr_t>(o.y) % sizeof(Vector<pair>) == 0 &&
                      reinterpret_cast<std::uintptr_t>(o.argmax) % pair == 0;
    with_window(p_, [&](auto window, auto pad) {
      with_lanes(o.x, p_.width, [&](auto lanes) {
        const auto kernel = p_.direction == Direction::forward
                                ? forward_kernel<window(), pad(), lanes()>
                                : backward_kernel<window(), pad(), lanes()>;
        launch(kernel, {blocks_for(g.threads), block_threads}, g, o);
      });
    });
  }

 private:
  Problem p_;
  Geometry geometry_;
};

constexpr VariantInfo info{
    .name = "vectorized",
    .technique = Technique::cuda,
    .builds_on = "naive",
    .adds =
        "2 outputs or 2 x 4 elements of dx per thread, in vectors of 16 bytes; windows known "
        "when compiling",
    .place = Place::cuda,
};

const Registration registration{info, make_plan<MaxPool, VectorizedPlan>};

}  // namespace
}  // namespace stepladder::max_pool
