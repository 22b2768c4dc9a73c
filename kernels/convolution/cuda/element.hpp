// One element of the result: the work of a thread in the CUDA rungs with one thread per element.
#pragma once

#include "kernels/common/host_device.hpp"
#include "kernels/convolution/convolution.hpp"

namespace stepladder::convolution {

// A problem with its derived sizes, computed once on the host.
struct Geometry : Problem {
  explicit Geometry(const Problem& p)
      : Problem(p),
        out_height(p.out_h()),
        out_width(p.out_w()),
        in_per_group(p.group_in()),
        out_per_group(p.group_out()),
        x(p.x_strides()),
        w(p.w_strides()),
        y(p.y_strides()) {}
  std::int64_t out_height, out_width, in_per_group, out_per_group;
  Strides x, w, y;
};

// The coordinates of the element at offset `index` of an operand. Neighbouring threads have
// neighbouring offsets.
struct Position {
  std::int64_t first, channel, row, column;  // as in Strides
};
STEPLADDER_HOST_DEVICE inline Position position(Layout layout, std::int64_t index,
                                                std::int64_t channels, std::int64_t rows,
                                                std::int64_t columns) {
  const std::int64_t first = index / (channels * rows * columns);
  if (layout == Layout::nchw)
    return {first, index / (rows * columns) % channels, index / columns % rows, index % columns};
  return {first, index % channels, index / (channels * columns) % rows, index / channels % columns};
}

// y at `index`: the dot product of its window of x and its filter.
STEPLADDER_HOST_DEVICE inline float forward_element(const Geometry& g, const Operands& o,
                                                    std::int64_t index) {
  const auto [n, k, p, q] = position(g.layout, index, g.out_channels, g.out_height, g.out_width);
  const std::int64_t first_channel = k / g.out_per_group * g.in_per_group;
  float sum = 0;
  for (std::int64_t i = 0; i < g.in_per_group; ++i) {
    const float* x = o.x + n * g.x.first + (first_channel + i) * g.x.channel;
    const float* w = o.w + k * g.w.first + i * g.w.channel;
    for (std::int64_t r = 0; r < g.kernel_h; ++r) {
      const std::int64_t row = p * g.stride_h - g.pad_h + r;
      if (row < 0 || row >= g.height) continue;
      for (std::int64_t s = 0; s < g.kernel_w; ++s) {
        const std::int64_t column = q * g.stride_w - g.pad_w + s;
        if (column < 0 || column >= g.width) continue;
        sum += x[row * g.x.row + column * g.x.column] * w[r * g.w.row + s * g.w.column];
      }
    }
  }
  return sum;
}

// dx at `index`, gathered from the outputs whose window covers it. Every stride_h-th filter row
// meets an output row, starting with r = (h + pad_h) mod stride_h. When r grows by stride_h, the
// output row decreases by one.
STEPLADDER_HOST_DEVICE inline float backward_data_element(const Geometry& g, const Operands& o,
                                                          std::int64_t index) {
  const auto [n, c, h, v] = position(g.layout, index, g.in_channels, g.height, g.width);
  const std::int64_t row = h + g.pad_h, column = v + g.pad_w;
  const std::int64_t group = c / g.in_per_group, i = c % g.in_per_group;
  float sum = 0;
  for (std::int64_t k = group * g.out_per_group; k < (group + 1) * g.out_per_group; ++k) {
    const float* dy = o.y + n * g.y.first + k * g.y.channel;
    const float* w = o.w + k * g.w.first + i * g.w.channel;
    std::int64_t p = row / g.stride_h;
    for (std::int64_t r = row % g.stride_h; r < g.kernel_h && p >= 0; r += g.stride_h, --p) {
      if (p >= g.out_height) continue;
      std::int64_t q = column / g.stride_w;
      for (std::int64_t s = column % g.stride_w; s < g.kernel_w && q >= 0; s += g.stride_w, --q)
        if (q < g.out_width)
          sum += dy[p * g.y.row + q * g.y.column] * w[r * g.w.row + s * g.w.column];
    }
  }
  return sum;
}

// dw at `index`: the sum over all outputs of all images of dy times the element of x that this
// filter element meets.
STEPLADDER_HOST_DEVICE inline float backward_weights_element(const Geometry& g, const Operands& o,
                                                             std::int64_t index) {
  const auto [k, i, r, s] = position(g.layout, index, g.in_per_group, g.kernel_h, g.kernel_w);
  const std::int64_t c = k / g.out_per_group * g.in_per_group + i;
  float sum = 0;
  for (std::int64_t n = 0; n < g.batch; ++n) {
    const float* x = o.x + n * g.x.first + c * g.x.channel;
    const float* dy = o.y + n * g.y.first + k * g.y.channel;
    for (std::int64_t p = 0; p < g.out_height; ++p) {
      const std::int64_t row = p * g.stride_h - g.pad_h + r;
      if (row < 0 || row >= g.height) continue;
      for (std::int64_t q = 0; q < g.out_width; ++q) {
        const std::int64_t column = q * g.stride_w - g.pad_w + s;
        if (column < 0 || column >= g.width) continue;
        sum += x[row * g.x.row + column * g.x.column] * dy[p * g.y.row + q * g.y.column];
      }
    }
  }
  return sum;
}

}  // namespace stepladder::convolution
