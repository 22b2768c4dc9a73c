// One description of forward and backward_data for CUDA kernels: correlations of a source with the
// filters, with the axes of axis.hpp. forward is one correlation from x to y. backward_data is
// stride_h x stride_w correlations from dy to dx, one for each pair of remainders of a pixel's row
// and column modulo the stride. Elements of dx with equal remainders use the same filter elements,
// so no thread multiplies by the zeros between strided gradients.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/common/host_device.hpp"
#include "kernels/convolution/axis.hpp"
#include "kernels/convolution/convolution.hpp"

namespace stepladder::convolution {

// An Axis in 32-bit integers, which a GPU adds and multiplies in one instruction.
struct CudaAxis {
  explicit CudaAxis(const Axis& a)
      : source(static_cast<int>(a.source)),
        target(static_cast<int>(a.target)),
        pixels(static_cast<int>(a.pixels)),
        first(static_cast<int>(a.first)),
        step(static_cast<int>(a.step)),
        stride(static_cast<int>(a.stride)),
        taps(static_cast<int>(a.taps)),
        origin(static_cast<int>(a.origin)),
        kernel_first(static_cast<int>(a.kernel_first)),
        kernel_step(static_cast<int>(a.kernel_step)) {}
  int source, target, pixels, first, step, stride, taps, origin, kernel_first, kernel_step;
};

// Strides of the images that a correlation reads or writes.
struct CudaStrides {
  explicit CudaStrides(const Strides& s)
      : image(static_cast<int>(s.first)),
        channel(static_cast<int>(s.channel)),
        row(static_cast<int>(s.row)),
        column(static_cast<int>(s.column)) {}
  int image, channel, row, column;
};

struct CudaCorrelation {
  CudaAxis rows, columns;
  int batch, groups;
  int source_channels, target_channels;  // of one group
  CudaStrides source, target;
  int w_group, w_source, w_target, w_row, w_column;  // strides of w
  bool channels_last;                                // NHWC

  int taps() const { return rows.taps * columns.taps; }
  std::int64_t pixels() const { return std::int64_t{batch} * rows.pixels * columns.pixels; }
};

// The correlations of a forward or backward_data problem that write at least one pixel.
inline std::vector<CudaCorrelation> correlations(const Problem& p) {
  const int in = static_cast<int>(p.group_in()), out = static_cast<int>(p.group_out());
  const CudaStrides x(p.x_strides()), y(p.y_strides());
  const Strides w = p.w_strides();
  const int w_out = static_cast<int>(w.first), w_in = static_cast<int>(w.channel);
  const auto make = [&](const Axis& rows, const Axis& columns) {
    const bool forward = p.direction == Direction::forward;
    return CudaCorrelation{.rows = CudaAxis(rows),
                           .columns = CudaAxis(columns),
                           .batch = static_cast<int>(p.batch),
                           .groups = static_cast<int>(p.groups),
                           .source_channels = forward ? in : out,
                           .target_channels = forward ? out : in,
                           .source = forward ? x : y,
                           .target = forward ? y : x,
                           .w_group = out * w_out,
                           .w_source = forward ? w_in : w_out,
                           .w_target = forward ? w_out : w_in,
                           .w_row = static_cast<int>(w.row),
                           .w_column = static_cast<int>(w.column),
                           .channels_last = p.layout == Layout::nhwc};
  };
  if (p.direction == Direction::forward)
    return {make(forward_axis(p.height, p.out_h(), p.kernel_h, p.stride_h, p.pad_h),
                 forward_axis(p.width, p.out_w(), p.kernel_w, p.stride_w, p.pad_w))};
  std::vector<CudaCorrelation> all;
  for (std::int64_t row = 0; row < p.stride_h && row < p.height; ++row)
    for (std::int64_t column = 0; column < p.stride_w && column < p.width; ++column)
      all.push_back(
          make(backward_axis(p.height, p.out_h(), p.kernel_h, p.stride_h, p.pad_h, row),
               backward_axis(p.width, p.out_w(), p.kernel_w, p.stride_w, p.pad_w, column)));
  return all;
}

// 0 <= at < size
STEPLADDER_HOST_DEVICE inline bool is_inside(int at, int size) {
  return static_cast<unsigned>(at) < static_cast<unsigned>(size);
}

inline constexpr std::int64_t max_int_index = std::numeric_limits<int>::max() - 1023;

// Kernels index elements with int. They also compute the indices of padding, which is the pad of x
// and, in backward_data, at most a filter's size around y, and of a tile beyond the last element.
// Throws Unsupported for larger operands.
inline void require_int_indices(const Problem& p) {
  const std::int64_t x =
      p.batch * p.in_channels * (p.height + 2 * p.pad_h) * (p.width + 2 * p.pad_w);
  std::int64_t y = p.y_count();
  if (p.direction == Direction::backward_data)
    y = p.batch * p.out_channels * (p.out_h() + p.kernel_h) * (p.out_w() + p.kernel_w);
  if (std::max({x, y, p.w_count()}) > max_int_index)
    throw Unsupported("supports operands of at most 2147482624 elements, with their padding");
}

}  // namespace stepladder::convolution
