// Computes the products of `direct` in another loop order: the kernel element outside, a row of the
// image inside.
//
//   for each (n, o, i, r, s), for each output row:
//     y row             += w[o, i, r, s] · x row [q · stride_w]      forward
//     dx row            += w[o, i, r, s] · dy row                    backward_data
//     dw[o, i, r, s]    += x row · dy row                            backward_weights
//
// The limits of the padding are computed once per row. The innermost loop has no tests, keeps w in
// a register and runs along memory.
#include "kernels/convolution/convolution.hpp"
#include "kernels/convolution/cpu/valid_range.hpp"

namespace stepladder::convolution {
namespace {

void forward_row(const float* x, float w, float* y, std::int64_t count, std::int64_t stride) {
#pragma omp simd
  for (std::int64_t q = 0; q < count; ++q) y[q] += w * x[q * stride];
}

void backward_data_row(float* dx, float w, const float* dy, std::int64_t count,
                       std::int64_t stride) {
#pragma omp simd
  for (std::int64_t q = 0; q < count; ++q) dx[q * stride] += w * dy[q];
}

float backward_weights_row(const float* x, const float* dy, std::int64_t count,
                           std::int64_t stride) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t q = 0; q < count; ++q) sum += x[q * stride] * dy[q];
  return sum;
}

void convolve(const Problem& p, const Operands& t) {
  const std::int64_t out_h = p.out_h(), out_w = p.out_w(), group_in = p.group_in();
  switch (p.direction) {
    case Direction::forward:
      std::fill_n(t.y, p.y_count(), 0.0F);
      break;
    case Direction::backward_data:
      std::fill_n(t.x, p.x_count(), 0.0F);
      break;
    case Direction::backward_weights:
      std::fill_n(t.w, p.w_count(), 0.0F);
      break;
  }

  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t o = 0; o < p.out_channels; ++o)
      for (std::int64_t i = 0; i < group_in; ++i) {
        const std::int64_t channel = o / p.group_out() * group_in + i;
        float* x = t.x + (n * p.in_channels + channel) * p.height * p.width;  // [height, width]
        float* y = t.y + (n * p.out_channels + o) * out_h * out_w;            // [out_h, out_w]
        float* w = t.w + (o * group_in + i) * p.kernel_h * p.kernel_w;  // [kernel_h, kernel_w]
        for (std::int64_t r = 0; r < p.kernel_h; ++r)
          for (std::int64_t s = 0; s < p.kernel_w; ++s, ++w) {
            const Range rows = valid_range(p.height, out_h, p.stride_h, r - p.pad_h);
            const Range columns = valid_range(p.width, out_w, p.stride_w, s - p.pad_w);
            const std::int64_t count = columns.end - columns.begin;
            for (std::int64_t row = rows.begin; row < rows.end; ++row) {
              float* x_row = x + (row * p.stride_h + r - p.pad_h) * p.width +
                             columns.begin * p.stride_w + s - p.pad_w;
              float* y_row = y + row * out_w + columns.begin;
              switch (p.direction) {
                case Direction::forward:
                  forward_row(x_row, *w, y_row, count, p.stride_w);
                  break;
                case Direction::backward_data:
                  backward_data_row(x_row, *w, y_row, count, p.stride_w);
                  break;
                case Direction::backward_weights:
                  *w += backward_weights_row(x_row, y_row, count, p.stride_w);
                  break;
              }
            }
          }
      }
}

constexpr VariantInfo info{
    .name = "reordered",
    .technique = Technique::serial,
    .builds_on = "direct",
    .adds = "loop order: the innermost loop runs along an image row, without tests",
    .idea = Idea::loop_order,
};

const Registration registration{info, plan_of<convolve>};

}  // namespace
}  // namespace stepladder::convolution
