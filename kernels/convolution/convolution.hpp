// convolution: the layer of a CNN (a cross-correlation, as in every framework), with stride, zero
// padding, groups and rectangular filters.
//
//   forward            y[n, o, p, q] = sum over i, r, s of
//                          x[n, i, p·stride_h − pad_h + r, q·stride_w − pad_w + s] · w[o, i, r, s]
//   backward_data      dx: the gradient of the loss with respect to x, from dy and w
//   backward_weights   dw: the gradient of the loss with respect to w, from x and dy
//
// Output channel o reads the in_channels / groups input channels of its group.
//
// The problem names the layout of x and y (kernels/common/layout.hpp), and with it that of w:
//
//   nchw      w [out_channels, group_in, kernel_h, kernel_w]
//   nhwc      w [out_channels, kernel_h, kernel_w, group_in]
//   chwn      w [group_in, kernel_h, kernel_w, out_channels]
//   nchw16c   w [blocks of 16 output channels, group_in, kernel_h, kernel_w, 16]; as in y, the last
//             block is filled up with zeros, which are written by whoever writes w
//
// A variant accepts the layouts that its VariantInfo names.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/common/variant.hpp"

namespace stepladder::convolution {

enum class Direction { forward, backward_data, backward_weights };
using stepladder::Layout;
using stepladder::Strides;

struct Problem {
  Direction direction = Direction::forward;
  std::int64_t batch = 0, in_channels = 0, height = 0, width = 0;
  std::int64_t out_channels = 0, kernel_h = 0, kernel_w = 0;
  std::int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, groups = 1;
  Layout layout = Layout::nchw;

  std::int64_t out_h() const { return (height + 2 * pad_h - kernel_h) / stride_h + 1; }
  std::int64_t out_w() const { return (width + 2 * pad_w - kernel_w) / stride_w + 1; }
  std::int64_t group_in() const { return in_channels / groups; }    // input channels of one group
  std::int64_t group_out() const { return out_channels / groups; }  // output channels of one group
  std::int64_t x_count() const;  // elements in memory, with padding channels
  std::int64_t w_count() const;
  std::int64_t y_count() const;
  // The first axis is the image for x and y, the output channel for w; the channel axis of w covers
  // one group.
  Strides x_strides() const { return image_strides(layout, batch, in_channels, height, width); }
  Strides w_strides() const;
  Strides y_strides() const { return image_strides(layout, batch, out_channels, out_h(), out_w()); }
};

// The direction decides which operand is written (x or w then holds its gradient); the others are
// read. The axes are in the order of the layout; here those of nchw.
struct Operands {
  float* x;  // [batch, in_channels, height, width]
  float* w;  // [out_channels, in_channels / groups, kernel_h, kernel_w]
  float* y;  // [batch, out_channels, out_h, out_w]; its gradient in the backward directions
};

struct Convolution {
  static constexpr const char* name = "convolution";
  using Problem = convolution::Problem;
  using Operands = convolution::Operands;
  // Throws Unsupported when the variant does not accept the layout of the problem.
  static void require(const Problem& problem, const VariantInfo& info);
};

using Plan = stepladder::Plan<Operands>;
using Registration = stepladder::Registration<Convolution>;

std::string direction(const Problem& problem);
std::string shape(const Problem& problem);  // "n64 c32 h14 w14 k64 r5 s5 stride1x1 pad2x2 g1"
// Two for each product of the sums above, the same in every direction. Products with the zeros of
// padding need not be computed and do not count.
double flops(const Problem& problem);
double bytes_read(const Problem& problem);     // each operand read once, without padding channels
double bytes_written(const Problem& problem);  // the result once
std::int64_t terms(const Problem& problem);    // largest number of products in one result element

// Throws std::invalid_argument, with the dimension at fault, unless all dimensions are positive,
// groups divides both channel counts, padding is not negative and the output is not empty.
void validate(const Problem& problem);

// The result of the direction in fp64, and magnitude = the same sum over absolute values. The error
// bound is gamma(terms + 2) · magnitude (Higham, Accuracy and Stability, section 3.1).
void reference(const Problem& problem, const Operands& operands, double* result, double* magnitude);

}  // namespace stepladder::convolution
