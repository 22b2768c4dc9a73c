// Memory layouts, written out once more for tests: index formulas, independent of Strides. And
// values and pools to try them on.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/problem/random.hpp"
#include "kernels/common/layout.hpp"

namespace stepladder {

struct Sizes {
  std::int64_t first, channels, rows, columns;
  std::int64_t count() const { return first * channels * rows * columns; }
};

inline constexpr Layout all_layouts[] = {Layout::nchw, Layout::nhwc, Layout::chwn, Layout::nchw16c};

// Images from nchw to `layout`; padding channels are 0.
template <class Number>
std::vector<Number> images_in(Layout layout, const std::vector<Number>& nchw, const Sizes& size) {
  const std::int64_t N = size.first, C = size.channels, H = size.rows, W = size.columns;
  const std::int64_t blocks = (C + 15) / 16;
  std::vector<Number> out(
      static_cast<std::size_t>(layout == Layout::nchw16c ? N * blocks * 16 * H * W : size.count()));
  for (std::int64_t n = 0; n < N; ++n)
    for (std::int64_t c = 0; c < C; ++c)
      for (std::int64_t h = 0; h < H; ++h)
        for (std::int64_t w = 0; w < W; ++w) {
          const std::int64_t plain = ((n * C + c) * H + h) * W + w;
          const std::int64_t at = layout == Layout::nchw   ? plain
                                  : layout == Layout::nhwc ? ((n * H + h) * W + w) * C + c
                                  : layout == Layout::chwn
                                      ? ((c * H + h) * W + w) * N + n
                                      : (((n * blocks + c / 16) * H + h) * W + w) * 16 + c % 16;
          out[static_cast<std::size_t>(at)] = nchw[static_cast<std::size_t>(plain)];
        }
  return out;
}

// Filters [out_channels, channels, rows, columns] from those of nchw to those of `layout`.
template <class Number>
std::vector<Number> filters_in(Layout layout, const std::vector<Number>& plain, const Sizes& size) {
  if (layout != Layout::nchw16c) return images_in(layout, plain, size);
  // [blocks of output channels, channels, rows, columns, 16]: as one image of out_channels
  // channels.
  const std::int64_t taps = size.channels * size.rows * size.columns;
  return images_in(layout, plain, {1, size.first, taps, 1});
}

inline std::vector<float> integers(Random& random, const Sizes& size) {
  std::vector<float> all(static_cast<std::size_t>(size.count()));
  for (float& one : all) one = static_cast<float>(random.integer(-9, 9));
  return all;
}

// A pool whose windows overlap or leave gaps, and reach into the padding.
template <class Problem>
Problem random_windows(Random& random) {
  Problem p{.batch = random.integer(1, 3), .channels = random.integer(1, 20)};
  p.window_h = random.integer(1, 5);
  p.window_w = random.integer(1, 5);
  p.stride_h = random.integer(1, 6);
  p.stride_w = random.integer(1, 6);
  p.pad_h = random.integer(0, p.window_h - 1);
  p.pad_w = random.integer(0, p.window_w - 1);
  p.height = random.integer(p.window_h, 14);
  p.width = random.integer(p.window_w, 14);
  validate(p);
  return p;
}

}  // namespace stepladder
