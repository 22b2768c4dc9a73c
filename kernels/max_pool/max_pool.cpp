#include "kernels/max_pool/max_pool.hpp"

#include <fmt/format.h>

#include "kernels/common/pooling.hpp"

namespace stepladder::max_pool {

void MaxPool::require(const Problem& problem, const VariantInfo& info) {
  require_layout(problem.layout, info);
  if (problem.epilogue != Epilogue::none && !info.epilogue)
    throw Unsupported("supports no epilogue (bias and ReLU)");
}

std::string direction(const Problem& p) {
  const std::string name = p.direction == Direction::forward ? "forward" : "backward";
  return p.epilogue == Epilogue::bias_relu ? name + "_bias_relu" : name;
}

std::string shape(const Problem& p) {
  return pooling_shape(p) + (p.epilogue == Epilogue::bias_relu ? " bias relu" : "");
}

double flops(const Problem& problem) {
  const Problem p = unpadded(problem);
  const std::int64_t pooling = p.direction == Direction::forward ? p.window_h * p.window_w - 1 : 1;
  const std::int64_t epilogue = p.epilogue == Epilogue::bias_relu ? 2 : 0;
  return static_cast<double>(p.y_count()) * static_cast<double>(pooling + epilogue);
}

double bytes_read(const Problem& problem) {
  const Problem p = unpadded(problem);
  const bool has_epilogue = p.epilogue == Epilogue::bias_relu;
  const auto x = static_cast<double>(p.x_count()), y = static_cast<double>(p.y_count());
  if (p.direction == Direction::forward)
    return 4 * x + (has_epilogue ? 4 * static_cast<double>(p.channels) : 0);
  return (has_epilogue ? 9 : 5) * y;
}

double bytes_written(const Problem& problem) {
  const Problem p = unpadded(problem);
  const auto x = static_cast<double>(p.x_count()), y = static_cast<double>(p.y_count());
  if (p.direction == Direction::forward) return 5 * y;
  return 4 * x + (p.epilogue == Epilogue::bias_relu ? 4 * static_cast<double>(p.channels) : 0);
}

void validate(const Problem& p) {
  validate_pooling(p);
  if (p.epilogue != Epilogue::none && p.layout != Layout::nchw)
    throw std::invalid_argument(
        fmt::format("an epilogue in layout {}; expected nchw", name_of(p.layout)));
  if (p.window_h > 256 || p.window_w > 256 || p.window_h * p.window_w > 256)
    throw std::invalid_argument(
        fmt::format("window {}x{} has more than the 256 positions that a one-byte arg-max can hold",
                    p.window_h, p.window_w));
}

}  // namespace stepladder::max_pool
