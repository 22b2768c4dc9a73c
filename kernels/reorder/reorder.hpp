// reorder: copies a batch of images from one memory layout to another (kernels/common/layout.hpp).
//
//   y[n, c, h, w] = x[n, c, h, w]
//
// It is what a network pays between two layers whose rungs work in different layouts. If the result
// is in nchw16c, the variant writes the zeros of its padding channels.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/common/variant.hpp"

namespace stepladder::reorder {

struct Problem {
  std::int64_t batch = 0, channels = 0, height = 0, width = 0;
  Layout from = Layout::nchw, to = Layout::chwn;

  std::int64_t pixels() const { return height * width; }
  // Elements in memory, with padding channels.
  std::int64_t x_count() const { return batch * stored_channels(from, channels) * pixels(); }
  std::int64_t y_count() const { return batch * stored_channels(to, channels) * pixels(); }
  Strides x_strides() const { return image_strides(from, batch, channels, height, width); }
  Strides y_strides() const { return image_strides(to, batch, channels, height, width); }
};

struct Operands {
  const float* x;  // in layout `from`
  float* y;        // in layout `to`
};

struct Reorder {
  static constexpr const char* name = "reorder";
  using Problem = reorder::Problem;
  using Operands = reorder::Operands;
};

using Plan = stepladder::Plan<Operands>;
using Registration = stepladder::Registration<Reorder>;

std::string direction(const Problem& problem);  // "nchw_to_chwn" and so on
std::string shape(const Problem& problem);      // "n64 c32 h28 w28"
double flops(const Problem& problem);           // none
double bytes_read(const Problem& problem);      // x once, without padding channels
double bytes_written(const Problem& problem);   // y once, without padding channels

// Throws std::invalid_argument, with the dimension at fault, unless all dimensions are positive and
// the layouts differ.
void validate(const Problem& problem);

void reference(const Problem& problem, const float* x, double* y);

}  // namespace stepladder::reorder
