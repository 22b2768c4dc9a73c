#include "kernels/max_pool/max_pool.hpp"

#include <fmt/format.h>

#include <utility>

namespace stepladder::max_pool {

std::string direction(const Problem& p) {
  return p.direction == Direction::forward ? "forward" : "backward";
}

std::string shape(const Problem& p) {
  return fmt::format("n{} c{} h{} w{} r{} s{} stride{}x{} pad{}x{}", p.batch, p.channels, p.height,
                     p.width, p.window_h, p.window_w, p.stride_h, p.stride_w, p.pad_h, p.pad_w);
}

double flops(const Problem& p) {
  const auto windows = static_cast<double>(p.y_count());
  return p.direction == Direction::forward
             ? windows * static_cast<double>(p.window_h * p.window_w - 1)
             : windows;
}

double bytes_read(const Problem& p) {
  return p.direction == Direction::forward ? 4.0 * static_cast<double>(p.x_count())
                                           : 5.0 * static_cast<double>(p.y_count());
}

double bytes_written(const Problem& p) {
  return p.direction == Direction::forward ? 5.0 * static_cast<double>(p.y_count())
                                           : 4.0 * static_cast<double>(p.x_count());
}

void validate(const Problem& p) {
  for (const auto& [what, value] : {std::pair{"batch", p.batch},
                                    {"channels", p.channels},
                                    {"height", p.height},
                                    {"width", p.width},
                                    {"window_h", p.window_h},
                                    {"window_w", p.window_w},
                                    {"stride_h", p.stride_h},
                                    {"stride_w", p.stride_w}})
    if (value < 1)
      throw std::invalid_argument(fmt::format("{} is {}; at least 1 is needed", what, value));
  if (p.window_h > 256 || p.window_w > 256 || p.window_h * p.window_w > 256)
    throw std::invalid_argument(
        fmt::format("window {}x{} has more than the 256 places that a one-byte arg-max can name",
                    p.window_h, p.window_w));
  if (p.pad_h < 0 || p.pad_h >= p.window_h || p.pad_w < 0 || p.pad_w >= p.window_w)
    throw std::invalid_argument(
        fmt::format("padding {}x{} must lie between 0 and the window {}x{} less 1", p.pad_h,
                    p.pad_w, p.window_h, p.window_w));
  if (p.height + 2 * p.pad_h < p.window_h || p.width + 2 * p.pad_w < p.window_w)
    throw std::invalid_argument(fmt::format("window {}x{} is larger than the padded input {}x{}",
                                            p.window_h, p.window_w, p.height + 2 * p.pad_h,
                                            p.width + 2 * p.pad_w));
}

}  // namespace stepladder::max_pool
