// average_pool: the average of each window of a plane. Windows may overlap and reach into padding,
// whose elements are 0.
//
//   forward    y = sum of the window's elements inside the plane / divisor
//   backward   dx = sum of dy / divisor over the windows that contain the element; 0 if none does
//
// The divisor of a window is the number of its positions, padding included or excluded: average
// pooling of oneDNN [8], count_include_pad of PyTorch.
//
// The problem names the layout of its operands (kernels/common/layout.hpp); a variant accepts those
// that its VariantInfo names.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/common/variant.hpp"

namespace stepladder::average_pool {

enum class Direction { forward, backward };
enum class Count { include_padding, exclude_padding };  // the positions that the divisor counts

struct Problem {
  Direction direction = Direction::forward;
  std::int64_t batch = 0, channels = 0, height = 0, width = 0;
  std::int64_t window_h = 0, window_w = 0, stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;
  Count count = Count::include_padding;
  Layout layout = Layout::nchw;

  std::int64_t out_h() const { return (height + 2 * pad_h - window_h) / stride_h + 1; }
  std::int64_t out_w() const { return (width + 2 * pad_w - window_w) / stride_w + 1; }
  // In memory: with padding channels.
  std::int64_t planes() const { return batch * stored_channels(layout, channels); }
  std::int64_t x_count() const { return planes() * height * width; }
  std::int64_t y_count() const { return planes() * out_h() * out_w(); }
  Strides x_strides() const { return image_strides(layout, batch, channels, height, width); }
  Strides y_strides() const { return image_strides(layout, batch, channels, out_h(), out_w()); }
};

// forward reads x and writes y; backward reads y (as dy) and writes x (as dx). The axes are in the
// order of the layout; here those of nchw.
struct Operands {
  float* x;  // [batch, channels, height, width]
  float* y;  // [batch, channels, out_h, out_w]
};

struct AveragePool {
  static constexpr const char* name = "average_pool";
  using Problem = average_pool::Problem;
  using Operands = average_pool::Operands;
  // Throws Unsupported when the variant does not accept the layout of the problem.
  static void require(const Problem& problem, const VariantInfo& info);
};

using Plan = stepladder::Plan<Operands>;
using Registration = stepladder::Registration<AveragePool>;

const char* name_of(Count count);               // include_padding, exclude_padding
std::string direction(const Problem& problem);  // forward, backward
// "n64 c32 h28 w28 r2 s2 stride2x2 pad0x0"; " exclude_padding" with that count
std::string shape(const Problem& problem);
// For each y, with n positions in a window: n - 1 additions and a division (forward), a division
// and n additions (backward). Padding channels count as neither FLOPs nor bytes.
double flops(const Problem& problem);
double bytes_read(const Problem& problem);     // x or dy, once
double bytes_written(const Problem& problem);  // y or dx, once

// Throws std::invalid_argument, with the dimension at fault, unless all dimensions are positive,
// padding is smaller than the window and the output is not empty. Every window then has a position
// inside the plane.
void validate(const Problem& problem);

// The results in fp64, each with magnitude = the same sum of absolute values, for the error bound.
void reference_forward(const Problem& problem, const float* x, double* y, double* magnitude);
void reference_backward(const Problem& problem, const float* dy, double* dx, double* magnitude);

}  // namespace stepladder::average_pool
