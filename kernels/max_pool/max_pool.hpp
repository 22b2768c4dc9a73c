// max_pool: the maximum of each window of a plane, and its position. Windows may overlap and reach
// into padding, which is never the maximum.
//
//   forward    y = max of the window; argmax = its position, row by row, the first of equals
//   backward   dx[argmax] += dy for every window; dx is 0 where no window has its maximum
//
// A problem may have an epilogue, the layers that follow in a network: the channel's bias, and
// ReLU. A variant supports such problems if its VariantInfo says so.
//
//   forward    y = max(0, max of the window + bias[channel]); argmax as above
//   backward   g = y > 0 ? dy : 0;  dx[argmax] += g;  dbias[channel] = sum of g
//
// The problem names the layout of its operands (kernels/common/layout.hpp); a variant accepts those
// that its VariantInfo names. The padding channels of nchw16c are planes of zeros like any others:
// their y and dx are 0, their argmax is the first position inside the plane.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/common/variant.hpp"

namespace stepladder::max_pool {

enum class Direction { forward, backward };
enum class Epilogue { none, bias_relu };

struct Problem {
  Direction direction = Direction::forward;
  std::int64_t batch = 0, channels = 0, height = 0, width = 0;
  std::int64_t window_h = 0, window_w = 0, stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;
  Epilogue epilogue = Epilogue::none;
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

// forward reads x and writes y and argmax; backward reads y (as dy) and argmax and writes x (as
// dx). With the epilogue, forward also reads bias; backward also reads forward_y and writes dbias.
// The axes are in the order of the layout; here those of nchw.
struct Operands {
  float* x;  // [batch, channels, height, width]
  float* y;  // [batch, channels, out_h, out_w]
  // [batch, channels, out_h, out_w]: row · window_w + column, from the window's corner, which may
  // be in padding. A position inside the plane, also of a window without a number.
  std::uint8_t* argmax;
  const float* bias = nullptr;       // [channels]
  const float* forward_y = nullptr;  // [batch, channels, out_h, out_w]: the y that forward wrote
  float* dbias = nullptr;            // [channels]
};

struct MaxPool {
  static constexpr const char* name = "max_pool";
  using Problem = max_pool::Problem;
  using Operands = max_pool::Operands;
  // Throws Unsupported when the variant does not support the layout or the epilogue of the problem.
  static void require(const Problem& problem, const VariantInfo& info);
};

using Plan = stepladder::Plan<Operands>;
using Registration = stepladder::Registration<MaxPool>;

std::string direction(const Problem& problem);  // forward, backward; "forward_bias_relu" and so on
// "n64 c32 h28 w28 r2 s2 stride2x2 pad0x0"; " bias relu" with that epilogue
std::string shape(const Problem& problem);
// Comparisons (forward) or additions (backward). The epilogue adds 2 per y: bias and ReLU, or mask
// and bias gradient. Padding channels count as neither FLOPs nor bytes.
double flops(const Problem& problem);
double bytes_read(const Problem& problem);     // x and bias, or dy, argmax and forward_y, once
double bytes_written(const Problem& problem);  // y and argmax, or dx and dbias, once

// Throws std::invalid_argument, with the dimension at fault, unless all dimensions are positive,
// the window has at most 256 positions, padding is smaller than the window, the output is not
// empty, and a problem with an epilogue is in NCHW.
void validate(const Problem& problem);

// The results in fp64: forward y and argmax (exact); backward dx, and with the epilogue dbias, each
// with magnitude = sum of |g| for the error bound. bias and forward_y are read only with the
// epilogue.
void reference_forward(const Problem& problem, const float* x, const float* bias, double* y,
                       std::uint8_t* argmax);
void reference_backward(const Problem& problem, const float* dy, const std::uint8_t* argmax,
                        const float* forward_y, double* dx, double* magnitude);
void reference_bias_gradient(const Problem& problem, const float* dy, const float* forward_y,
                             double* dbias, double* magnitude);

}  // namespace stepladder::max_pool
