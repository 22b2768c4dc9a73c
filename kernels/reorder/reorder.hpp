// reorder: copies a batch of images from one memory layout to another (kernels/common/layout.hpp),
// or from one number format to another.
//
//   y[n, c, h, w] = x[n, c, h, w]
//
// It is what a network pays between two layers whose rungs work in different layouts or formats. If
// the result is in nchw16c, the variant writes the zeros of its padding channels.
//
// Formats change in nchw, from fp32 or to fp32. A number that the result's format lacks is rounded
// to nearest, ties to even; int8 saturates at -128 and 127, and x has no NaN there. Numbers below
// 2^-126 may become 0 in bf16, as the instructions of AVX512_BF16 have it. Scales of a quantization
// are the caller's.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/common/variant.hpp"

namespace stepladder::reorder {

enum class Format { fp32, bf16, fp16, int8 };

const char* name_of(Format format);
std::int64_t bytes_of(Format format);  // of an element

struct Problem {
  std::int64_t batch = 0, channels = 0, height = 0, width = 0;
  Layout from = Layout::nchw, to = Layout::chwn;
  Format from_format = Format::fp32, to_format = Format::fp32;

  bool changes_format() const { return from_format != to_format; }
  std::int64_t pixels() const { return height * width; }
  // Elements in memory, with padding channels.
  std::int64_t x_count() const { return batch * stored_channels(from, channels) * pixels(); }
  std::int64_t y_count() const { return batch * stored_channels(to, channels) * pixels(); }
  Strides x_strides() const { return image_strides(from, batch, channels, height, width); }
  Strides y_strides() const { return image_strides(to, batch, channels, height, width); }
};

struct Operands {
  const void* x;  // in layout `from`, of numbers in `from_format`
  void* y;        // in layout `to`, of numbers in `to_format`
};

struct Reorder {
  static constexpr const char* name = "reorder";
  using Problem = reorder::Problem;
  using Operands = reorder::Operands;
};

using Plan = stepladder::Plan<Operands>;
using Registration = stepladder::Registration<Reorder>;

std::string direction(const Problem& problem);  // "nchw_to_chwn", "fp32_to_bf16" and so on
std::string shape(const Problem& problem);      // "n64 c32 h28 w28"
double flops(const Problem& problem);           // none
double bytes_read(const Problem& problem);      // x once, without padding channels
double bytes_written(const Problem& problem);   // y once, without padding channels

// Throws std::invalid_argument, with the dimension at fault, unless all dimensions are positive and
// either the layouts differ or, in nchw, the formats, one of which is fp32.
void validate(const Problem& problem);

// The numbers of the result, of x without infinities and NaN in narrow formats.
void reference(const Problem& problem, const void* x, double* y);

}  // namespace stepladder::reorder
