#include "kernels/convolution/axis.hpp"

#include "kernels/common/integer_math.hpp"

namespace stepladder::convolution {

Axis forward_axis(std::int64_t x, std::int64_t y, std::int64_t kernel, std::int64_t stride,
                  std::int64_t pad) {
  return {.source = x,
          .target = y,
          .pixels = y,
          .first = 0,
          .step = 1,
          .stride = stride,
          .taps = kernel,
          .origin = -pad,
          .kernel_first = 0,
          .kernel_step = 1};
}

// Forward multiplies x[h] by filter element r for output y[q] where q · stride + r = h + pad. So h
// fixes r % stride: r = r0 + j · stride and q = q0 − j. Taps ascend in q and descend in j.
Axis backward_axis(std::int64_t x, std::int64_t y, std::int64_t kernel, std::int64_t stride,
                   std::int64_t pad, std::int64_t remainder) {
  const std::int64_t r0 = (remainder + pad) % stride, q0 = (remainder + pad) / stride;
  const std::int64_t taps = r0 < kernel ? ceil_div(kernel - r0, stride) : 0;
  return {.source = y,
          .target = x,
          .pixels = remainder < x ? ceil_div(x - remainder, stride) : 0,
          .first = remainder,
          .step = stride,
          .stride = 1,
          .taps = taps,
          .origin = q0 - (taps - 1),
          .kernel_first = r0 + (taps - 1) * stride,
          .kernel_step = -stride};
}

Correlation forward_correlation(const Problem& p) {
  return {forward_axis(p.height, p.out_h(), p.kernel_h, p.stride_h, p.pad_h),
          forward_axis(p.width, p.out_w(), p.kernel_w, p.stride_w, p.pad_w)};
}

Correlations correlations_of(const Problem& p) {
  if (p.direction == Direction::forward)
    return {.source_channels = p.group_in(),
            .target_channels = p.group_out(),
            .all = {forward_correlation(p)}};
  Correlations classes{
      .source_channels = p.group_out(), .target_channels = p.group_in(), .all = {}};
  for (std::int64_t i = 0; i < p.stride_h; ++i)
    for (std::int64_t j = 0; j < p.stride_w; ++j) {
      const Axis h = backward_axis(p.height, p.out_h(), p.kernel_h, p.stride_h, p.pad_h, i);
      const Axis w = backward_axis(p.width, p.out_w(), p.kernel_w, p.stride_w, p.pad_w, j);
      if (h.pixels == 0 || w.pixels == 0) continue;
      if (h.taps == 0 || w.taps == 0)
        classes.untouched_pixels = true;
      else
        classes.all.push_back({h, w});
    }
  return classes;
}

}  // namespace stepladder::convolution
