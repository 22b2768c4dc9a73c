#include "kernels/convolution/convolution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace stepladder::convolution {

void Convolution::require(const Problem& problem, const VariantInfo& info) {
  require_layout(problem.layout, info);
}

Strides Problem::w_strides() const {
  const std::int64_t taps = group_in() * kernel_h * kernel_w;
  if (layout != Layout::nchw16c)
    return image_strides(layout, out_channels, group_in(), kernel_h, kernel_w);
  return {.first = 1,
          .channel = kernel_h * kernel_w * block_channels,
          .row = kernel_w * block_channels,
          .column = block_channels,
          .first_block = taps * block_channels};
}

std::string direction(const Problem& p) {
  switch (p.direction) {
    case Direction::forward:
      return "forward";
    case Direction::backward_data:
      return "backward_data";
    case Direction::backward_weights:
      return "backward_weights";
  }
  return "";
}

std::string shape(const Problem& p) {
  return fmt::format("n{} c{} h{} w{} k{} r{} s{} stride{}x{} pad{}x{} g{}", p.batch, p.in_channels,
                     p.height, p.width, p.out_channels, p.kernel_h, p.kernel_w, p.stride_h,
                     p.stride_w, p.pad_h, p.pad_w, p.groups);
}

namespace {

// Filter taps that fall inside the image and not on padding, summed over the outputs of one axis.
std::int64_t taps_inside(std::int64_t size, std::int64_t out, std::int64_t kernel,
                         std::int64_t stride, std::int64_t pad) {
  std::int64_t sum = 0;
  for (std::int64_t p = 0; p < out; ++p) {
    const std::int64_t first = p * stride - pad;
    sum += std::max<std::int64_t>(
        0, std::min(first + kernel, size) - std::max<std::int64_t>(first, 0));
  }
  return sum;
}

}  // namespace

std::int64_t Problem::x_count() const {
  return batch * stored_channels(layout, in_channels) * height * width;
}
std::int64_t Problem::w_count() const {
  return stored_channels(layout, out_channels) * group_in() * kernel_h * kernel_w;
}
std::int64_t Problem::y_count() const {
  return batch * stored_channels(layout, out_channels) * out_h() * out_w();
}

double flops(const Problem& p) {
  const auto taps =
      static_cast<double>(taps_inside(p.height, p.out_h(), p.kernel_h, p.stride_h, p.pad_h) *
                          taps_inside(p.width, p.out_w(), p.kernel_w, p.stride_w, p.pad_w));
  return 2.0 * static_cast<double>(p.batch * p.out_channels * p.group_in()) * taps;
}

double bytes_written(const Problem& problem) {
  Problem p = problem;
  p.layout = Layout::nchw;  // without padding channels
  switch (p.direction) {
    case Direction::forward:
      return 4.0 * static_cast<double>(p.y_count());
    case Direction::backward_data:
      return 4.0 * static_cast<double>(p.x_count());
    case Direction::backward_weights:
      return 4.0 * static_cast<double>(p.w_count());
  }
  return 0;
}

double bytes_read(const Problem& problem) {
  Problem p = problem;
  p.layout = Layout::nchw;  // without padding channels
  return 4.0 * static_cast<double>(p.x_count() + p.w_count() + p.y_count()) - bytes_written(p);
}

std::int64_t terms(const Problem& p) {
  switch (p.direction) {
    case Direction::forward:
      return p.group_in() * p.kernel_h * p.kernel_w;
    case Direction::backward_data:
      return p.group_out() * p.kernel_h * p.kernel_w;
    case Direction::backward_weights:
      return p.batch * p.out_h() * p.out_w();
  }
  return 0;
}

void validate(const Problem& p) {
  for (const auto& [what, value] : {std::pair{"batch", p.batch},
                                    {"in_channels", p.in_channels},
                                    {"height", p.height},
                                    {"width", p.width},
                                    {"out_channels", p.out_channels},
                                    {"kernel_h", p.kernel_h},
                                    {"kernel_w", p.kernel_w},
                                    {"stride_h", p.stride_h},
                                    {"stride_w", p.stride_w},
                                    {"groups", p.groups}})
    if (value < 1)
      throw std::invalid_argument(fmt::format("{} is {}; at least 1 is needed", what, value));
  if (p.in_channels % p.groups != 0 || p.out_channels % p.groups != 0)
    throw std::invalid_argument(
        fmt::format("groups {} must divide in_channels {} and out_channels {}", p.groups,
                    p.in_channels, p.out_channels));
  if (p.pad_h < 0 || p.pad_w < 0)
    throw std::invalid_argument(
        fmt::format("padding {}x{} must not be negative", p.pad_h, p.pad_w));
  if (p.height + 2 * p.pad_h < p.kernel_h || p.width + 2 * p.pad_w < p.kernel_w)
    throw std::invalid_argument(fmt::format("kernel {}x{} is larger than the padded input {}x{}",
                                            p.kernel_h, p.kernel_w, p.height + 2 * p.pad_h,
                                            p.width + 2 * p.pad_w));
}

}  // namespace stepladder::convolution
