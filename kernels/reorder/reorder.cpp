#include "kernels/reorder/reorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "kernels/reorder/formats.hpp"

namespace stepladder::reorder {

const char* name_of(Format format) {
  switch (format) {
    case Format::fp32:
      return "fp32";
    case Format::bf16:
      return "bf16";
    case Format::fp16:
      return "fp16";
    case Format::int8:
      return "int8";
  }
  return "";
}

std::int64_t bytes_of(Format format) {
  return format == Format::fp32 ? 4 : format == Format::int8 ? 1 : 2;
}

std::string direction(const Problem& p) {
  if (p.changes_format())
    return fmt::format("{}_to_{}", name_of(p.from_format), name_of(p.to_format));
  return fmt::format("{}_to_{}", name_of(p.from), name_of(p.to));
}

std::string shape(const Problem& p) {
  return fmt::format("n{} c{} h{} w{}", p.batch, p.channels, p.height, p.width);
}

double flops(const Problem&) { return 0; }

double bytes_read(const Problem& p) {
  return static_cast<double>(bytes_of(p.from_format) * p.batch * p.channels * p.pixels());
}

double bytes_written(const Problem& p) {
  return static_cast<double>(bytes_of(p.to_format) * p.batch * p.channels * p.pixels());
}

void validate(const Problem& p) {
  for (const auto& [what, value] : {std::pair{"batch", p.batch},
                                    {"channels", p.channels},
                                    {"height", p.height},
                                    {"width", p.width}})
    if (value < 1)
      throw std::invalid_argument(fmt::format("{} is {}; at least 1 is needed", what, value));
  if (p.changes_format()) {
    if (p.from != Layout::nchw || p.to != Layout::nchw ||
        (p.from_format != Format::fp32 && p.to_format != Format::fp32))
      throw std::invalid_argument(fmt::format(
          "from {} in {} to {} in {}; expected fp32 on one side, and nchw on both",
          name_of(p.from_format), name_of(p.from), name_of(p.to_format), name_of(p.to)));
  } else if (p.from_format != Format::fp32 || p.from == p.to) {
    throw std::invalid_argument(
        fmt::format("from {0} to {0}; expected two layouts or two formats",
                    p.from_format == Format::fp32 ? name_of(p.from) : name_of(p.from_format)));
  }
}

namespace {

// Both from the definition of the formats, not as the rungs compute them.
double number_of(float x) { return x; }
double number_of(std::int8_t x) { return x; }
double number_of(std::uint16_t code, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int mantissa = code & ((1 << mantissa_bits) - 1);
  const int exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1);
  const double size =
      exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                    : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  return code >> 15 != 0 ? -size : size;
}
double number_of(Bf16 x) { return number_of(x.bits, 8); }
double number_of(Fp16 x) { return number_of(x.bits, 5); }

double rounded(double x, Format format) {
  if (format == Format::fp32) return x;
  if (format == Format::int8) return std::clamp(std::nearbyint(x), -128.0, 127.0);
  const bool is_bf16 = format == Format::bf16;
  const int digits = is_bf16 ? 8 : 11, least_exponent = is_bf16 ? -126 : -14;
  const double largest = is_bf16 ? 0x1.fep127 : 65504;
  if (x == 0 || !std::isfinite(x)) return x;
  const double unit = std::ldexp(1, std::max(std::ilogb(x), least_exponent) - digits + 1);
  const double nearest = std::nearbyint(x / unit) * unit;
  return std::abs(nearest) > largest ? std::copysign(HUGE_VAL, x) : nearest;
}

}  // namespace

void reference(const Problem& p, const void* x, double* y) {
  if (p.changes_format()) {
    for_types(p, [&]<class From, class>() {
      for (std::int64_t i = 0; i < p.x_count(); ++i)
        y[i] = rounded(number_of(static_cast<const From*>(x)[i]), p.to_format);
    });
    return;
  }
  const auto* values = static_cast<const float*>(x);
  const Strides in = p.x_strides(), out = p.y_strides();
  std::fill_n(y, p.y_count(), 0.0);
  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t c = 0; c < p.channels; ++c)
      for (std::int64_t h = 0; h < p.height; ++h)
        for (std::int64_t w = 0; w < p.width; ++w)
          y[out.plane(n, c) + h * out.row + w * out.column] =
              values[in.plane(n, c) + h * in.row + w * in.column];
}

}  // namespace stepladder::reorder
