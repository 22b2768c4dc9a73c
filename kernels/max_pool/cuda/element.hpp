// One element of the result: the work of a thread in the CUDA rungs with one thread per element.
#pragma once

#include <cmath>

#include "kernels/common/host_device.hpp"
#include "kernels/max_pool/max_pool.hpp"

namespace stepladder::max_pool {

// A problem with its derived sizes, computed once on the host.
struct Geometry : Problem {
  explicit Geometry(const Problem& p) : Problem(p), out_height(p.out_h()), out_width(p.out_w()) {}
  std::int64_t out_height, out_width;
};

struct Maximum {
  float value;
  std::uint8_t position;  // as in Operands::argmax
};

// The maximum of the window of y[index].
STEPLADDER_HOST_DEVICE inline Maximum forward_element(const Geometry& g, const float* x,
                                                      std::int64_t index) {
  const std::int64_t j = index % g.out_width, i = index / g.out_width % g.out_height;
  const float* plane = x + index / (g.out_width * g.out_height) * g.height * g.width;
  Maximum best{-INFINITY, 0};
  for (std::int64_t r = 0; r < g.window_h; ++r) {
    const std::int64_t row = i * g.stride_h - g.pad_h + r;
    if (row < 0 || row >= g.height) continue;
    for (std::int64_t s = 0; s < g.window_w; ++s) {
      const std::int64_t column = j * g.stride_w - g.pad_w + s;
      if (column < 0 || column >= g.width) continue;
      const float value = plane[row * g.width + column];
      if (value > best.value) best = {value, static_cast<std::uint8_t>(r * g.window_w + s)};
    }
  }
  return best;
}

// dx[index], gathered from the windows that cover it. In padded coordinates, window i covers the
// rows [i·stride_h, i·stride_h + window_h).
STEPLADDER_HOST_DEVICE inline float backward_element(const Geometry& g, const float* dy,
                                                     const std::uint8_t* argmax,
                                                     std::int64_t index) {
  const std::int64_t column = index % g.width + g.pad_w;
  const std::int64_t row = index / g.width % g.height + g.pad_h;
  const std::int64_t plane = index / (g.width * g.height) * g.out_height * g.out_width;
  const std::int64_t first_i = row < g.window_h ? 0 : (row - g.window_h) / g.stride_h + 1;
  const std::int64_t first_j = column < g.window_w ? 0 : (column - g.window_w) / g.stride_w + 1;
  float sum = 0;
  for (std::int64_t i = first_i; i < g.out_height && i * g.stride_h <= row; ++i)
    for (std::int64_t j = first_j; j < g.out_width && j * g.stride_w <= column; ++j) {
      const std::int64_t position = (row - i * g.stride_h) * g.window_w + column - j * g.stride_w;
      const std::int64_t window = plane + i * g.out_width + j;
      if (argmax[window] == position) sum += dy[window];
    }
  return sum;
}

}  // namespace stepladder::max_pool
