// The definition: a loop over all positions of every window. Each position is tested for padding,
// and each window is divided by its number of positions.
#include "kernels/average_pool/average_pool.hpp"

namespace stepladder::average_pool {
namespace {

// Calls visit(address in x) for the positions of window (i, j) inside the plane; their number.
template <class Visit>
std::int64_t for_window(const Problem& p, const Operands& o, std::int64_t plane, std::int64_t i,
                        std::int64_t j, const Visit& visit) {
  std::int64_t inside = 0;
  for (std::int64_t r = 0; r < p.window_h; ++r)
    for (std::int64_t s = 0; s < p.window_w; ++s) {
      const std::int64_t row = i * p.stride_h - p.pad_h + r;
      const std::int64_t column = j * p.stride_w - p.pad_w + s;
      if (row < 0 || row >= p.height || column < 0 || column >= p.width) continue;
      visit(o.x + (plane * p.height + row) * p.width + column);
      ++inside;
    }
  return inside;
}

float divisor(const Problem& p, std::int64_t inside) {
  return static_cast<float>(p.count == Count::include_padding ? p.window_h * p.window_w : inside);
}

void forward(const Problem& p, const Operands& o) {
  const std::int64_t out_h = p.out_h(), out_w = p.out_w();
  for (std::int64_t plane = 0; plane < p.planes(); ++plane)
    for (std::int64_t i = 0; i < out_h; ++i)
      for (std::int64_t j = 0; j < out_w; ++j) {
        float sum = 0;
        const std::int64_t inside =
            for_window(p, o, plane, i, j, [&](const float* x) { sum += *x; });
        o.y[(plane * out_h + i) * out_w + j] = sum / divisor(p, inside);
      }
}

void backward(const Problem& p, const Operands& o) {
  const std::int64_t out_h = p.out_h(), out_w = p.out_w();
  for (std::int64_t index = 0; index < p.x_count(); ++index) o.x[index] = 0;
  for (std::int64_t plane = 0; plane < p.planes(); ++plane)
    for (std::int64_t i = 0; i < out_h; ++i)
      for (std::int64_t j = 0; j < out_w; ++j) {
        const std::int64_t inside = for_window(p, o, plane, i, j, [](const float*) {});
        const float share = o.y[(plane * out_h + i) * out_w + j] / divisor(p, inside);
        for_window(p, o, plane, i, j, [&](float* dx) { *dx += share; });
      }
}

void pool(const Problem& p, const Operands& o) {
  if (p.direction == Direction::forward)
    forward(p, o);
  else
    backward(p, o);
}

constexpr VariantInfo info{
    .name = "serial",
    .technique = Technique::serial,
    .adds = "the definition: a loop over all positions of every window, with branches",
};

const Registration registration{info, plan_of<pool>};

}  // namespace
}  // namespace stepladder::average_pool
