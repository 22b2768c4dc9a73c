// What the contracts of max_pool and average_pool have in common: the text and the limits of a
// problem's planes and windows. `Problem` has batch, channels, height, width, window_h, window_w,
// stride_h, stride_w, pad_h and pad_w.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace stepladder {

// The problem without padding channels, whose counts are those of FLOPs and bytes.
template <class Problem>
Problem unpadded(Problem p) {
  p.layout = Layout::nchw;
  return p;
}

// "n64 c32 h28 w28 r2 s2 stride2x2 pad0x0"
template <class Problem>
std::string pooling_shape(const Problem& p) {
  return fmt::format("n{} c{} h{} w{} r{} s{} stride{}x{} pad{}x{}", p.batch, p.channels, p.height,
                     p.width, p.window_h, p.window_w, p.stride_h, p.stride_w, p.pad_h, p.pad_w);
}

// Throws std::invalid_argument, with the dimension at fault, unless all dimensions are positive,
// padding is smaller than the window and the output is not empty.
template <class Problem>
void validate_pooling(const Problem& p) {
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
  if (p.pad_h < 0 || p.pad_h >= p.window_h || p.pad_w < 0 || p.pad_w >= p.window_w)
    throw std::invalid_argument(
        fmt::format("padding {}x{} must be at least 0 and less than the window {}x{}", p.pad_h,
                    p.pad_w, p.window_h, p.window_w));
  if (p.height + 2 * p.pad_h < p.window_h || p.width + 2 * p.pad_w < p.window_w)
    throw std::invalid_argument(fmt::format("window {}x{} is larger than the padded input {}x{}",
                                            p.window_h, p.window_w, p.height + 2 * p.pad_h,
                                            p.width + 2 * p.pad_w));
}

}  // namespace stepladder
