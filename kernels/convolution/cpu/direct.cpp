// The definition, seven nested loops: batch, output channel, output row and column, input channel,
// kernel row and column. Each product first tests whether its element of x lies in the image or in
// the padding, and computes three addresses.
#include <algorithm>

#include "kernels/convolution/convolution.hpp"

namespace stepladder::convolution {
namespace {

// Offsets of the elements of x, w and y.
struct Index {
  const Problem& p;
  std::int64_t x(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    return ((n * p.in_channels + c) * p.height + h) * p.width + w;
  }
  std::int64_t w(std::int64_t o, std::int64_t i, std::int64_t r, std::int64_t s) const {
    return ((o * p.group_in() + i) * p.kernel_h + r) * p.kernel_w + s;
  }
  std::int64_t y(std::int64_t n, std::int64_t o, std::int64_t row, std::int64_t column) const {
    return ((n * p.out_channels + o) * p.out_h() + row) * p.out_w() + column;
  }
};

void forward(const Problem& p, const Operands& t) {
  const Index at{p};
  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t o = 0; o < p.out_channels; ++o)
      for (std::int64_t row = 0; row < p.out_h(); ++row)
        for (std::int64_t column = 0; column < p.out_w(); ++column) {
          const std::int64_t first_channel = o / p.group_out() * p.group_in();
          float sum = 0;
          for (std::int64_t i = 0; i < p.group_in(); ++i)
            for (std::int64_t r = 0; r < p.kernel_h; ++r)
              for (std::int64_t s = 0; s < p.kernel_w; ++s) {
                const std::int64_t h = row * p.stride_h - p.pad_h + r;
                const std::int64_t w = column * p.stride_w - p.pad_w + s;
                if (h >= 0 && h < p.height && w >= 0 && w < p.width)
                  sum += t.x[at.x(n, first_channel + i, h, w)] * t.w[at.w(o, i, r, s)];
              }
          t.y[at.y(n, o, row, column)] = sum;
        }
}

void backward_data(const Problem& p, const Operands& t) {
  const Index at{p};
  std::fill_n(t.x, p.x_count(), 0.0F);
  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t o = 0; o < p.out_channels; ++o)
      for (std::int64_t row = 0; row < p.out_h(); ++row)
        for (std::int64_t column = 0; column < p.out_w(); ++column) {
          const std::int64_t first_channel = o / p.group_out() * p.group_in();
          const float dy = t.y[at.y(n, o, row, column)];
          for (std::int64_t i = 0; i < p.group_in(); ++i)
            for (std::int64_t r = 0; r < p.kernel_h; ++r)
              for (std::int64_t s = 0; s < p.kernel_w; ++s) {
                const std::int64_t h = row * p.stride_h - p.pad_h + r;
                const std::int64_t w = column * p.stride_w - p.pad_w + s;
                if (h >= 0 && h < p.height && w >= 0 && w < p.width)
                  t.x[at.x(n, first_channel + i, h, w)] += dy * t.w[at.w(o, i, r, s)];
              }
        }
}

void backward_weights(const Problem& p, const Operands& t) {
  const Index at{p};
  for (std::int64_t o = 0; o < p.out_channels; ++o)
    for (std::int64_t i = 0; i < p.group_in(); ++i)
      for (std::int64_t r = 0; r < p.kernel_h; ++r)
        for (std::int64_t s = 0; s < p.kernel_w; ++s) {
          const std::int64_t channel = o / p.group_out() * p.group_in() + i;
          float sum = 0;
          for (std::int64_t n = 0; n < p.batch; ++n)
            for (std::int64_t row = 0; row < p.out_h(); ++row)
              for (std::int64_t column = 0; column < p.out_w(); ++column) {
                const std::int64_t h = row * p.stride_h - p.pad_h + r;
                const std::int64_t w = column * p.stride_w - p.pad_w + s;
                if (h >= 0 && h < p.height && w >= 0 && w < p.width)
                  sum += t.x[at.x(n, channel, h, w)] * t.y[at.y(n, o, row, column)];
              }
          t.w[at.w(o, i, r, s)] = sum;
        }
}

void convolve(const Problem& p, const Operands& t) {
  switch (p.direction) {
    case Direction::forward:
      return forward(p, t);
    case Direction::backward_data:
      return backward_data(p, t);
    case Direction::backward_weights:
      return backward_weights(p, t);
  }
}

constexpr VariantInfo info{
    .name = "direct",
    .technique = Technique::serial,
    .adds = "the definition: seven loops, with a test for padding at every product",
};

const Registration registration{info, plan_of<convolve>};

}  // namespace
}  // namespace stepladder::convolution
