#include "kernels/reorder/reorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace stepladder::reorder {

std::string direction(const Problem& p) {
  return fmt::format("{}_to_{}", name_of(p.from), name_of(p.to));
}

std::string shape(const Problem& p) {
  return fmt::format("n{} c{} h{} w{}", p.batch, p.channels, p.height, p.width);
}

double flops(const Problem&) { return 0; }

double bytes_read(const Problem& p) {
  return 4.0 * static_cast<double>(p.batch * p.channels * p.pixels());
}

double bytes_written(const Problem& p) { return bytes_read(p); }

void validate(const Problem& p) {
  for (const auto& [what, value] : {std::pair{"batch", p.batch},
                                    {"channels", p.channels},
                                    {"height", p.height},
                                    {"width", p.width}})
    if (value < 1)
      throw std::invalid_argument(fmt::format("{} is {}; at least 1 is needed", what, value));
  if (p.from == p.to)
    throw std::invalid_argument(
        fmt::format("from {} to {}; expected two layouts", name_of(p.from), name_of(p.to)));
}

void reference(const Problem& p, const float* x, double* y) {
  const Strides in = p.x_strides(), out = p.y_strides();
  std::fill_n(y, p.y_count(), 0.0);
  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t c = 0; c < p.channels; ++c)
      for (std::int64_t h = 0; h < p.height; ++h)
        for (std::int64_t w = 0; w < p.width; ++w)
          y[out.plane(n, c) + h * out.row + w * out.column] =
              x[in.plane(n, c) + h * in.row + w * in.column];
}

}  // namespace stepladder::reorder
