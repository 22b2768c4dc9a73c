#include <algorithm>

#include "kernels/common/add_products.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/convolution.hpp"

namespace stepladder::convolution {
namespace {

// The outputs q whose input column q·stride − pad + s is inside the image: [first, last).
struct Range {
  std::int64_t first, last;
};
Range inside(std::int64_t size, std::int64_t outputs, std::int64_t stride, std::int64_t pad,
             std::int64_t s) {
  const std::int64_t first = std::max<std::int64_t>(0, ceil_div(pad - s, stride));
  const std::int64_t last = std::min(outputs, (size - 1 + pad - s) / stride + 1);
  return {pad - s > 0 ? first : 0, size - 1 + pad - s < 0 ? 0 : last};
}

}  // namespace

void reference(const Problem& p, const Operands& o, double* result, double* magnitude) {
  const std::int64_t out_h = p.out_h(), out_w = p.out_w();
  const Strides x = p.x_strides(), w = p.w_strides(), y = p.y_strides();
  const std::int64_t x_step = p.stride_w * x.column;
  const std::int64_t count = p.direction == Direction::forward         ? p.y_count()
                             : p.direction == Direction::backward_data ? p.x_count()
                                                                       : p.w_count();
  std::fill_n(result, count, 0.0);
  std::fill_n(magnitude, count, 0.0);

  // Adds all products of one image, output channel and input channel. Threads share the loop whose
  // iterations write distinct results: images, or output channels for backward_weights.
  const auto rows = [&](std::int64_t n, std::int64_t oc, std::int64_t ic) {  // ic within the group
    const std::int64_t channel = oc / p.group_out() * p.group_in() + ic;
    const std::int64_t x_plane = x.plane(n, channel);
    const std::int64_t y_plane = y.plane(n, oc);
    const std::int64_t w_plane = w.plane(oc, ic);
    for (std::int64_t r = 0; r < p.kernel_h; ++r)
      for (std::int64_t s = 0; s < p.kernel_w; ++s) {
        const Range ph = inside(p.height, out_h, p.stride_h, p.pad_h, r);
        const Range qw = inside(p.width, out_w, p.stride_w, p.pad_w, s);
        if (qw.last <= qw.first) continue;
        const std::int64_t width = qw.last - qw.first;
        const std::int64_t w_at = w_plane + r * w.row + s * w.column;
        for (std::int64_t i = ph.first; i < ph.last; ++i) {
          const std::int64_t x_at = x_plane + (i * p.stride_h - p.pad_h + r) * x.row +
                                    (qw.first * p.stride_w - p.pad_w + s) * x.column;
          const std::int64_t y_at = y_plane + i * y.row + qw.first * y.column;
          switch (p.direction) {
            case Direction::forward:
              add_products(width, result + y_at, magnitude + y_at, y.column, o.x + x_at, x_step,
                           o.w + w_at, 0);
              break;
            case Direction::backward_data:
              add_products(width, result + x_at, magnitude + x_at, x_step, o.y + y_at, y.column,
                           o.w + w_at, 0);
              break;
            case Direction::backward_weights:
              add_products(width, result + w_at, magnitude + w_at, 0, o.x + x_at, x_step,
                           o.y + y_at, y.column);
              break;
          }
        }
      }
  };

  const bool by_filter = p.direction == Direction::backward_weights;
  const std::int64_t shared = by_filter ? p.out_channels : p.batch;
  const std::int64_t others = by_filter ? p.batch : p.out_channels;
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t mine = 0; mine < shared; ++mine)
    for (std::int64_t other = 0; other < others; ++other)
      for (std::int64_t ic = 0; ic < p.group_in(); ++ic)
        by_filter ? rows(other, mine, ic) : rows(mine, other, ic);
}

}  // namespace stepladder::convolution
