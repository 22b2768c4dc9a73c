#include <algorithm>
#include <cmath>

#include "kernels/average_pool/average_pool.hpp"

namespace stepladder::average_pool {

namespace {

// Calls visit(index in y, index in x, divisor) for every position of a window inside its plane.
template <class Visit>
void for_each_position(const Problem& p, const Visit& visit) {
  const auto is_inside = [](std::int64_t at, std::int64_t size) { return at >= 0 && at < size; };
  const Strides in = p.x_strides(), out = p.y_strides();
  const auto for_plane = [&](std::int64_t x_plane, std::int64_t y_plane) {
    for (std::int64_t i = 0; i < p.out_h(); ++i)
      for (std::int64_t j = 0; j < p.out_w(); ++j) {
        const std::int64_t top = i * p.stride_h - p.pad_h, left = j * p.stride_w - p.pad_w;
        std::int64_t rows = 0, columns = 0;  // inside the plane
        for (std::int64_t r = 0; r < p.window_h; ++r) rows += is_inside(top + r, p.height);
        for (std::int64_t s = 0; s < p.window_w; ++s) columns += is_inside(left + s, p.width);
        const auto divisor = static_cast<double>(
            p.count == Count::include_padding ? p.window_h * p.window_w : rows * columns);
        for (std::int64_t r = 0; r < p.window_h; ++r)
          for (std::int64_t s = 0; s < p.window_w; ++s)
            if (is_inside(top + r, p.height) && is_inside(left + s, p.width))
              visit(y_plane + i * out.row + j * out.column,
                    x_plane + (top + r) * in.row + (left + s) * in.column, divisor);
      }
  };
  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t c = 0; c < stored_channels(p.layout, p.channels); ++c)
      for_plane(in.plane(n, c), out.plane(n, c));
}

}  // namespace

void reference_forward(const Problem& p, const float* x, double* y, double* magnitude) {
  std::fill_n(y, p.y_count(), 0.0);
  std::fill_n(magnitude, p.y_count(), 0.0);
  for_each_position(p, [&](std::int64_t out, std::int64_t in, double divisor) {
    y[out] += double{x[in]} / divisor;
    magnitude[out] += std::abs(double{x[in]}) / divisor;
  });
}

void reference_backward(const Problem& p, const float* dy, double* dx, double* magnitude) {
  std::fill_n(dx, p.x_count(), 0.0);
  std::fill_n(magnitude, p.x_count(), 0.0);
  for_each_position(p, [&](std::int64_t out, std::int64_t in, double divisor) {
    dx[in] += double{dy[out]} / divisor;
    magnitude[in] += std::abs(double{dy[out]}) / divisor;
  });
}

}  // namespace stepladder::average_pool
