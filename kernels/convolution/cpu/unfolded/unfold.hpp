// Unfolding of an image of one group (im2col): a matrix with one column per output pixel, which
// holds all input elements that the pixel reads.
//
//   columns      [group_in · kernel_h · kernel_w, out_h · out_w] = [taps, pixels]
//   transposed   [pixels, taps]
#pragma once

#include <algorithm>

#include "kernels/common/isa.hpp"
#include "kernels/convolution/convolution.hpp"
#include "kernels/convolution/cpu/valid_range.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

// Calls visit(row of columns, x row, first, last) for each row of `columns` and each output row.
// Outputs q in [first, last) read x row[q · stride_w], the others read padding. Rows of columns are
// columns_row apart.
template <class Visit>
void for_each_row(const Problem& p, float* columns, std::int64_t columns_row, float* x,
                  const Visit& visit) {
  const std::int64_t out_h = p.out_h(), out_w = p.out_w();
  for (std::int64_t i = 0; i < p.group_in(); ++i, x += p.height * p.width)
    for (std::int64_t r = 0; r < p.kernel_h; ++r)
      for (std::int64_t s = 0; s < p.kernel_w; ++s, columns += columns_row) {
        const Range rows = valid_range(p.height, out_h, p.stride_h, r - p.pad_h);
        const Range valid = valid_range(p.width, out_w, p.stride_w, s - p.pad_w);
        for (std::int64_t row = 0; row < out_h; ++row) {
          const bool in_image = row >= rows.begin && row < rows.end && valid.begin < valid.end;
          float* x_row = x;
          if (in_image) x_row += (row * p.stride_h + r - p.pad_h) * p.width + s - p.pad_w;
          visit(columns + row * out_w, x_row, in_image ? valid.begin : 0, in_image ? valid.end : 0);
        }
      }
}

inline void unfold(const Problem& p, float* x, float* columns, std::int64_t columns_row) {
  const std::int64_t out_w = p.out_w(), stride = p.stride_w;
  for_each_row(p, columns, columns_row, x,
               [&](float* to, const float* from, std::int64_t first, std::int64_t last) {
                 std::int64_t q = 0;
                 for (; q < first; ++q) to[q] = 0;
                 for (; q < last; ++q) to[q] = from[q * stride];
                 for (; q < out_w; ++q) to[q] = 0;
               });
}

// The reverse (col2im): a pixel that several columns contain receives their sum.
inline void fold(const Problem& p, float* columns, std::int64_t columns_row, float* x) {
  std::fill_n(x, p.group_in() * p.height * p.width, 0.0F);
  const std::int64_t stride = p.stride_w;
  for_each_row(p, columns, columns_row, x,
               [&](const float* from, float* to, std::int64_t first, std::int64_t last) {
                 for (std::int64_t q = first; q < last; ++q) to[q * stride] += from[q];
               });
}

// Rows of `transposed`, one per pixel, are `row` apart.
inline void unfold_transposed(const Problem& p, const float* x, float* transposed,
                              std::int64_t row) {
  for (std::int64_t h = 0; h < p.out_h(); ++h)
    for (std::int64_t q = 0; q < p.out_w(); ++q, transposed += row) {
      float* to = transposed;
      const std::int64_t top = h * p.stride_h - p.pad_h, left = q * p.stride_w - p.pad_w;
      const std::int64_t first = std::clamp<std::int64_t>(-left, 0, p.kernel_w);
      const std::int64_t last = std::clamp<std::int64_t>(p.width - left, first, p.kernel_w);
      for (std::int64_t i = 0; i < p.group_in(); ++i)
        for (std::int64_t r = 0; r < p.kernel_h; ++r, to += p.kernel_w) {
          const bool in_image = top + r >= 0 && top + r < p.height;
          const float* from = x + (i * p.height + top + r) * p.width + left;
          for (std::int64_t s = 0; s < p.kernel_w; ++s)
            to[s] = in_image && s >= first && s < last ? from[s] : 0;
        }
    }
}

}  // namespace stepladder::convolution::inline STEPLADDER_ISA
