// Several outputs per thread, in vectors. naive loads one float at a time, tests every position for
// padding and divides 64-bit integers to find its window. Here, for windows of 2x2 and 3x3 with
// stride 2, window and padding are template parameters:
//
//   forward    a thread computes two adjacent windows. It loads four columns of a row at once, and
//              for 3x3 the column beside them, which a neighbour's load has put into the cache
//
//                  column   2j−1 | 2j  2j+1  2j+2  2j+3 | 2j+4       j even
//                           pad 1   one load of 16 bytes   3x3 without padding
//
//   backward   a thread computes 2 x 4 elements of dx. It reads each of the 2 to 6 windows that
//              cover them once and stores 16 bytes per row. No atomics; each dx is written once
//
// The epilogue is fused (README). Expected: 80 to 90 % of the bandwidth of an out-of-cache copy, 2
// to 4 times naive.
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/common/cuda/fast_divisor.hpp"
#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/max_pool/cuda/channel_sum.hpp"
#include "kernels/max_pool/max_pool.hpp"

namespace stepladder::max_pool {
namespace {

constexpr int stride = 2;
constexpr int tile = 4;              // columns of x of a thread
constexpr int pair = tile / stride;  // columns of y of a thread

// A row of threads computes a row of y or two rows of dx. by_columns divides by the threads of a
// row, by_rows by the rows of threads of a plane. There is one group of blocks for all planes or,
// with the epilogue, one per channel.
struct LaunchGeometry {
  int height, width, out_height, out_width;
  unsigned groups, threads_per_group;
  FastDivisor by_columns, by_rows, blocks_per_group;
  bool pairs_aligned;  // two outputs can be stored at once
};

struct ThreadPosition {
  unsigned group, block;        // block: index in the group
  unsigned plane, row, column;  // row, column: of the plane's threads
  bool exists;                  // false for excess threads of a group's last block
};

__device__ ThreadPosition thread_position(const LaunchGeometry& g) {
  const auto [group, block] = g.blocks_per_group.divide(blockIdx.x);
  const unsigned t = block * block_threads + threadIdx.x;
  const auto [rows, column] = g.by_columns.divide(t);
  const auto [plane_of_group, row] = g.by_rows.divide(rows);
  return {group, block, plane_of_group * g.groups + group, row, column, t < g.threads_per_group};
}

template <int lanes>
struct alignas(lanes * sizeof(float)) Vector {
  float lane[lanes];
};

__device__ float relu(float value) { return value < 0 ? 0 : value; }

template <int window, int pad, int lanes, Epilogue epilogue>
__global__ void forward_kernel(LaunchGeometry g, Operands o) {
  const ThreadPosition at = thread_position(g);
  if (!at.exists) return;
  const int i = static_cast<int>(at.row), j = static_cast<int>(at.column) * pair;
  const float* x = o.x + std::int64_t{at.plane} * g.height * g.width;

  const float bias = epilogue == Epilogue::bias_relu ? o.bias[at.group] : 0;

  // Columns 2j − 1 to 2j + 4, −∞ outside the plane. All loads are issued before the first
  // comparison.
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
  int argmax[pair] = {};
#pragma unroll
  for (int k = 0; k < pair; ++k) {
    best[k] = -INFINITY;
#pragma unroll
    for (int r = 0; r < window; ++r)
#pragma unroll
      for (int s = 0; s < window; ++s) {
        const float value = values[r][1 - pad + k * stride + s];
        if (value > best[k]) best[k] = value, argmax[k] = r * window + s;
      }
    if (epilogue == Epilogue::bias_relu) best[k] = relu(best[k] + bias);
  }

  const std::int64_t first = (std::int64_t{at.plane} * g.out_height + i) * g.out_width + j;
  if (g.pairs_aligned) {
    *reinterpret_cast<Vector<pair>*>(o.y + first) = {best[0], best[1]};
    *reinterpret_cast<std::uint16_t*>(o.argmax + first) =
        static_cast<std::uint16_t>(argmax[0] | argmax[1] << 8);
  } else {
    for (int k = 0; k < pair; ++k)
      if (j + k < g.out_width) {
        o.y[first + k] = best[k];
        o.argmax[first + k] = static_cast<std::uint8_t>(argmax[k]);
      }
  }
}

// The operands of backward for one window; these defaults outside the plane.
struct WindowState {
  int argmax = -1;
  float dy = 0, y = 0;
};

// Gathers and stores a thread's dx; returns its sum. All loads are issued before the first use.
template <int window, int pad, int lanes, Epilogue epilogue>
__device__ float backward_tile(const LaunchGeometry& g, const Operands& o,
                               const ThreadPosition& at) {
  const int row = static_cast<int>(at.row) * stride, column = static_cast<int>(at.column) * tile;
  const std::int64_t first_window = std::int64_t{at.plane} * g.out_height * g.out_width;

  // Window (row + pad) / 2 begins at this row or one above. The window before it covers the row
  // only with 3 rows and no padding; the window after it begins in the tile only with padding.
  constexpr int before = window - pad == 3 ? 1 : 0;
  constexpr int rows = before + 1 + pad, columns = before + pair + pad;
  WindowState windows[rows][columns];
#pragma unroll
  for (int m = 0; m < rows; ++m)
#pragma unroll
    for (int n = 0; n < columns; ++n) {
      const int i = row / stride - before + m, j = column / stride - before + n;
      if (i < 0 || i >= g.out_height || j < 0 || j >= g.out_width) continue;
      const std::int64_t from = first_window + i * g.out_width + j;
      windows[m][n].argmax = o.argmax[from];
      windows[m][n].dy = o.y[from];
      if (epilogue == Epilogue::bias_relu) windows[m][n].y = o.forward_y[from];
    }

  float dx[stride][tile] = {};
#pragma unroll
  for (int m = 0; m < rows; ++m)
#pragma unroll
    for (int n = 0; n < columns; ++n) {
      const WindowState& from = windows[m][n];
      const float gradient = epilogue == Epilogue::none || from.y > 0 ? from.dy : 0;
#pragma unroll
      for (int h = 0; h < stride; ++h)
#pragma unroll
        for (int c = 0; c < tile; ++c) {
          const int r = h + pad - (m - before) * stride;  // position in the window
          const int s = c + pad - (n - before) * stride;
          if (0 <= r && r < window && 0 <= s && s < window && from.argmax == r * window + s)
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
__global__ void backward_kernel(LaunchGeometry g, Operands o, ChannelSum channels) {
  const ThreadPosition at = thread_position(g);
  const float sum = at.exists ? backward_tile<window, pad, lanes, epilogue>(g, o, at) : 0;
  if constexpr (epilogue == Epilogue::bias_relu) channels.add(at.group, at.block, sum, o.dbias);
}

template <int value>
using Constant = std::integral_constant<int, value>;

// Calls function(window, pad) with compile-time constants.
template <class Function>
void with_window(const Problem& p, const Function& function) {
  if (p.window_h == 2 && p.pad_h == 0) return function(Constant<2>{}, Constant<0>{});
  if (p.window_h == 2) return function(Constant<2>{}, Constant<1>{});
  if (p.pad_h == 0) return function(Constant<3>{}, Constant<0>{});
  return function(Constant<3>{}, Constant<1>{});
}

// Calls function(lanes), a constant, for the longest vectors that the alignment of x's rows allows.
template <class Function>
void with_lanes(const float* x, std::int64_t width, const Function& function) {
  const std::uintptr_t starts = reinterpret_cast<std::uintptr_t>(x) | width * sizeof(float);
  if (starts % sizeof(Vector<4>) == 0) return function(Constant<4>{});
  if (starts % sizeof(Vector<2>) == 0) return function(Constant<2>{});
  return function(Constant<1>{});
}

// Calls function(epilogue), a constant.
template <class Function>
void with_epilogue(const Problem& p, const Function& function) {
  if (p.epilogue == Epilogue::none)
    return function(std::integral_constant<Epilogue, Epilogue::none>{});
  return function(std::integral_constant<Epilogue, Epilogue::bias_relu>{});
}

// Throws Unsupported for problems outside the kernels' domain.
LaunchGeometry launch_geometry(const Problem& p) {
  const bool square = p.window_h == p.window_w && p.pad_h == p.pad_w;
  const bool is_supported = p.stride_h == stride && p.stride_w == stride && p.pad_h <= 1 &&
                            (p.window_h == 2 || p.window_h == 3);
  if (!square || !is_supported)
    throw Unsupported("supports windows of 2x2 and 3x3 with stride 2 and padding 0 or 1");
  if (p.x_count() > std::numeric_limits<std::int32_t>::max())
    throw Unsupported("supports at most 2147483647 elements of x");

  const bool forward = p.direction == Direction::forward;
  const std::int64_t columns = forward ? ceil_div(p.out_w(), pair) : ceil_div(p.width, tile);
  const std::int64_t rows = forward ? p.out_h() : ceil_div(p.height, stride);
  const std::int64_t groups = p.epilogue == Epilogue::none ? 1 : p.channels;
  const std::int64_t threads_per_group = p.planes() / groups * rows * columns;
  return {.height = static_cast<int>(p.height),
          .width = static_cast<int>(p.width),
          .out_height = static_cast<int>(p.out_h()),
          .out_width = static_cast<int>(p.out_w()),
          .groups = static_cast<unsigned>(groups),
          .threads_per_group = static_cast<unsigned>(threads_per_group),
          .by_columns = FastDivisor(static_cast<std::uint32_t>(columns)),
          .by_rows = FastDivisor(static_cast<std::uint32_t>(rows)),
          .blocks_per_group = FastDivisor(blocks_for(threads_per_group)),
          .pairs_aligned = false};
}

class VectorizedPlan final : public Plan {
 public:
  explicit VectorizedPlan(const Problem& p)
      : p_(p),
        geometry_(launch_geometry(p)),
        sums_(is_forward() || p.epilogue == Epilogue::none ? 0 : p.channels,
              blocks_for(geometry_.threads_per_group)) {}

  void run(const Operands& o) override {
    LaunchGeometry g = geometry_;
    g.pairs_aligned = g.out_width % pair == 0 &&
                      reinterpret_cast<std::uintptr_t>(o.y) % sizeof(Vector<pair>) == 0 &&
                      reinterpret_cast<std::uintptr_t>(o.argmax) % pair == 0;
    const Grid grid{g.groups * blocks_for(g.threads_per_group), block_threads};
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
  LaunchGeometry geometry_;
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
    .adds = "2 outputs or 2 x 4 elements of dx per thread, 16-byte vectors, fixed window sizes",
    .idea = Idea::vectors,
    .place = Place::cuda,
    .epilogue = true,
};

const Registration registration{info, make};

}  // namespace
}  // namespace stepladder::max_pool
