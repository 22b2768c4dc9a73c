// The definition: the maximum over all positions of every window except those in padding. Five
// branches per position, the last of which is unpredictable. The epilogue is applied window by
// window: bias and ReLU forward, ReLU's mask and the bias gradient backward.
#include <algorithm>
#include <limits>

#include "kernels/max_pool/max_pool.hpp"

namespace stepladder::max_pool {
namespace {

void forward(const Problem& p, const Operands& o) {
  const bool has_epilogue = p.epilogue == Epilogue::bias_relu;
  const std::int64_t out_h = p.out_h(), out_w = p.out_w();
  for (std::int64_t plane = 0; plane < p.planes(); ++plane)
    for (std::int64_t i = 0; i < out_h; ++i)
      for (std::int64_t j = 0; j < out_w; ++j) {
        float best = -std::numeric_limits<float>::infinity();
        // The first inside the plane: there may be no number that is larger than -infinity.
        std::int64_t position = std::max<std::int64_t>(0, p.pad_h - i * p.stride_h) * p.window_w +
                                std::max<std::int64_t>(0, p.pad_w - j * p.stride_w);
        for (std::int64_t r = 0; r < p.window_h; ++r)
          for (std::int64_t s = 0; s < p.window_w; ++s) {
            const std::int64_t row = i * p.stride_h - p.pad_h + r;
            const std::int64_t column = j * p.stride_w - p.pad_w + s;
            if (row < 0 || row >= p.height || column < 0 || column >= p.width) continue;
            const float value = o.x[(plane * p.height + row) * p.width + column];
            if (value > best) {
              best = value;
              position = r * p.window_w + s;
            }
          }
        if (has_epilogue) best = std::max(0.0F, best + o.bias[plane % p.channels]);
        o.y[(plane * out_h + i) * out_w + j] = best;
        o.argmax[(plane * out_h + i) * out_w + j] = static_cast<std::uint8_t>(position);
      }
}

void backward(const Problem& p, const Operands& o) {
  const bool has_epilogue = p.epilogue == Epilogue::bias_relu;
  const std::int64_t out_h = p.out_h(), out_w = p.out_w();
  for (std::int64_t index = 0; index < p.x_count(); ++index) o.x[index] = 0;
  if (has_epilogue) std::fill_n(o.dbias, p.channels, 0.0F);
  for (std::int64_t plane = 0; plane < p.planes(); ++plane)
    for (std::int64_t i = 0; i < out_h; ++i)
      for (std::int64_t j = 0; j < out_w; ++j) {
        const std::int64_t from = (plane * out_h + i) * out_w + j;
        if (has_epilogue) {
          if (!(o.forward_y[from] > 0)) continue;
          o.dbias[plane % p.channels] += o.y[from];
        }
        const std::int64_t row = i * p.stride_h - p.pad_h + o.argmax[from] / p.window_w;
        const std::int64_t column = j * p.stride_w - p.pad_w + o.argmax[from] % p.window_w;
        o.x[(plane * p.height + row) * p.width + column] += o.y[from];
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
    .epilogue = true,
};

const Registration registration{info, plan_of<pool>};

}  // namespace
}  // namespace stepladder::max_pool
