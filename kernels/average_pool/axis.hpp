// The windows along one axis of a plane, rows or columns. A window is the product of one along each
// axis, and so is its divisor.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/average_pool/average_pool.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/integer_math.hpp"

namespace stepladder::average_pool::inline STEPLADDER_ISA {

struct Axis {
  std::int64_t size, window, stride, pad, out;

  // The positions in the plane of window i; never empty.
  Range positions(std::int64_t i) const {
    const std::int64_t start = i * stride - pad;
    return {std::max<std::int64_t>(0, start), std::min(size, start + window)};
  }
  // The windows that contain position h; empty, begin >= end, between windows and after the last.
  Range windows(std::int64_t h) const {
    return {ceil_div(std::max<std::int64_t>(0, h + pad - window + 1), stride),
            std::min(out, (h + pad) / stride + 1)};
  }
};

inline Axis row_axis(const Problem& p) {
  return {p.height, p.window_h, p.stride_h, p.pad_h, p.out_h()};
}
inline Axis column_axis(const Problem& p) {
  return {p.width, p.window_w, p.stride_w, p.pad_w, p.out_w()};
}

// 1 / divisor of window (i, j) is row_factor(i) · column_factor(j).
inline float row_factor(const Problem& p, std::int64_t i) {
  const Range rows = row_axis(p).positions(i);
  return 1.0F / static_cast<float>(p.count == Count::include_padding ? p.window_h * p.window_w
                                                                     : rows.end - rows.begin);
}
inline float column_factor(const Problem& p, std::int64_t j) {
  const Range columns = column_axis(p).positions(j);
  return 1.0F /
         static_cast<float>(p.count == Count::include_padding ? 1 : columns.end - columns.begin);
}

}  // namespace stepladder::average_pool::inline STEPLADDER_ISA
