#include "kernels/max_pool/max_pool.hpp"

#include <fmt/format.h>

#include <utility>

namespace stepladder::max_pool {

void MaxPool::require(const Problem& problem, const VariantInfo& info) {
  if (problem.epilogue != Epilogue::none && !info.epilogue)
    throw Unsupported("supports no epilogue (bias and ReLU)");
}

std::string direction(const Problem& p) {
  const std::string name = p.direction == Direction::forward ? "forward" : "backward";
  return p.epilogue == Epilogue::bias_relu ? name + "_bias_relu" : name;
}

std::string shape(const Problem& p) {
  return fmt::format("n{} c{} h{} w{} r{} s{} stride{}x{} pad{}x{}{}", p.batch, p.channels,
                     p.height, p.width, p.window_h, p.window_w, p.stride_h, p.stride_w, p.pad_h,
                     p.pad_w, p.epilogue == Epilogue::bias_relu ? " bias relu" : "");
}

double flops(const Problem& p) {
  const std::int64_t pooling = p.direction == Direction::forward ? p.window_h * p.window_w - 1 : 1;
  const std::int64_t epilogue = p.epilogue == Epilogue::bias_relu ? 2 : 0;
  return static_cast<double>(p.y_count()) * static_cast<double>(pooling + epilogue);
}

double bytes_read(const Problem& p) {
  const bool has_epilogue = p.epilogue == Epilogue::bias_relu;
  const auto x = static_cast<double>(p.x_count()), y = static_cast<double>(p.y_count());
  if (p.direction == Direction::forward)
    return 4 * x + (has_epilogue ? 4 * static_cast<double>(p.channels) : 0);
  return (has_epilogue ? 9 : 5) * y;
}

double bytes_written(const Problem& p) {
  const auto x = static_cast<double>(p.x_count()), y = static_cast<double>(p.y_count());
  if (p.direction == Direction::forward) return 5 * y;
  return 4 * x + (p.epilogue == Epilogue::bias_relu ? 4 * static_cast<double>(p.channels) : 0);
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
        fmt::format("window {}x{} has more than the 256 positions that a one-byte arg-max can hold",
                    p.window_h, p.window_w));
  if (p.pad_h < 0 || p.pad_h >= p.window_h || p.pad_w < 0 || p.pad_w >= p.window_w)
    throw std::invalid_argument(
        fmt::format("padding {}x{} must be at least 0 and less than the window {}x{}", p.pad_h,
                    p.pad_w, p.window_h, p.window_w));
  if (p.height + 2 * p.pad_h < p.window_h || p.width + 2 * p.pad_w < p.window_w)
    throw std::invalid_argument(fmt::format("window {}x{} is larger than the padded input {}x{}",
                                            p.window_h, p.window_w, p.height + 2 * p.pad_h,
                                            p.width + 2 * p.pad_w));
}

}  // namespace stepladder::max_pool
