// The work of one thread in the CUDA rungs that give every element of the result its own thread.
#pragma once

#include "kernels/common/host_device.hpp"
#include "kernels/convolution/convolution.hpp"

namespace stepladder::convolution {

// A problem with the sizes that follow from it, worked out once on the host.
struct Geometry : Problem {
  explicit Geometry(const Problem& p)
      : Problem(p),
        out_height(p.out_h()),
        out_width(p.out_w()),
        in_per_group(p.group_in()),
        out_per_group(p.group_out()) {}
  std::int64_t out_height, out_width, in_per_group, out_per_group;
};

// y at `index` of [batch, out_channels, out_h, out_w]: the window of x under it times its filter.
STEPLADDER_HOST_DEVICE inline float forward_element(const Geometry& g, const Operands& o,
                                                    std::int64_t index) {
  const std::int64_t q = index % g.out_width, p = index / g.out_width % g.out_height;
  const std::int64_t plane = index / (g.out_width * g.out_height);
  const std::int64_t k = plane % g.out_channels, n = plane / g.out_channels;
  const std::int64_t first_channel = k / g.out_per_group * g.in_per_group;
  float sum = 0;
  for (std::int64_t i = 0; i < g.in_per_group; ++i) {
    const float* x = o.x + (n * g.in_channels + first_channel + i) * g.height * g.width;
    const float* w = o.w + (k * g.in_per_group + i) * g.kernel_h * g.kernel_w;
    for (std::int64_t r = 0; r < g.kernel_h; ++r) {
      const std::int64_t row = p * g.stride_h - g.pad_h + r;
      if (row < 0 || row >= g.height) continue;
      for (std::int64_t s = 0; s < g.kernel_w; ++s) {
        const std::int64_t column = q * g.stride_w - g.pad_w + s;
        if (column < 0 || column >= g.width) continue;
        sum += x[row * g.width + column] * w[r * g.kernel_w + s];
      }
    }
  }
  return sum;
}

// dx at `index` of [batch, in_channels, height, width], gathered from the outputs whose window
// covers it. Of the filter's rows only every stride_h-th meets an output row: r = (h + pad_h) mod
// stride_h, and from there on each further stride_h rows belong to one output row less.
STEPLADDER_HOST_DEVICE inline float backward_data_element(const Geometry& g, const Operands& o,
                                                          std::int64_t index) {
  const std::int64_t column = index % g.width + g.pad_w;
  const std::int64_t row = index / g.width % g.height + g.pad_h;
  const std::int64_t plane = index / (g.width * g.height);
  const std::int64_t c = plane % g.in_channels, n = plane / g.in_channels;
  const std::int64_t group = c / g.in_per_group, i = c % g.in_per_group;
  float sum = 0;
  for (std::int64_t k = group * g.out_per_group; k < (group + 1) * g.out_per_group; ++k) {
    const float* dy = o.y + (n * g.out_channels + k) * g.out_height * g.out_width;
    const float* w = o.w + (k * g.in_per_group + i) * g.kernel_h * g.kernel_w;
    std::int64_t p = row / g.stride_h;
    for (std::int64_t r = row % g.stride_h; r < g.kernel_h && p >= 0; r += g.stride_h, --p) {
      if (p >= g.out_height) continue;
      std::int64_t q = column / g.stride_w;
      for (std::int64_t s = column % g.stride_w; s < g.kernel_w && q >= 0; s += g.stride_w, --q)
        if (q < g.out_width) sum += dy[p * g.out_width + q] * w[r * g.kernel_w + s];
    }
  }
  return sum;
}

// dw at `index` of [out_channels, in_channels / groups, kernel_h, kernel_w]: x under this place of
// the filter, times dy, over all outputs of all images.
STEPLADDER_HOST_DEVICE inline float backward_weights_element(const Geometry& g, const Operands& o,
                                                             std::int64_t index) {
  const std::int64_t s = index % g.kernel_w, r = index / g.kernel_w % g.kernel_h;
  const std::int64_t filter = index / (g.kernel_w * g.kernel_h);
  const std::int64_t i = filter % g.in_per_group, k = filter / g.in_per_group;
  const std::int64_t c = k / g.out_per_group * g.in_per_group + i;
  float sum = 0;
  for (std::int64_t n = 0; n < g.batch; ++n) {
    const float* x = o.x + (n * g.in_channels + c) * g.height * g.width;
    const float* dy = o.y + (n * g.out_channels + k) * g.out_height * g.out_width;
    for (std::int64_t p = 0; p < g.out_height; ++p) {
      const std::int64_t row = p * g.stride_h - g.pad_h + r;
      if (row < 0 || row >= g.height) continue;
      for (std::int64_t q = 0; q < g.out_width; ++q) {
        const std::int64_t column = q * g.stride_w - g.pad_w + s;
        if (column < 0 || column >= g.width) continue;
        sum += x[row * g.width + column] * dy[p * g.out_width + q];
      }
    }
  }
  return sum;
}

}  // namespace stepladder::convolution
