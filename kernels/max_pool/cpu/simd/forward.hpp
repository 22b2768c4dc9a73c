// Forward on vectors along the output row. Each lane is an output. For each window position, a
// vector of values is compared with the running maximum:
//
//   x      a b c d e f g h …      stride 2, window 2: lanes a c e g …, b d f h …, then the next row
//   y      0   1   2   3   …
//
// There are no tests for padding or for the end of a row. Planes with padding are first copied
// into padded lines. The last vector of a row may write beyond the row; the next row overwrites
// that. Windows of 3x3 with stride 2 read such planes in place: lanes outside the plane become −∞,
// and rows outside are skipped.
#pragma once

#include <algorithm>
#include <limits>

#include "kernels/common/integer_math.hpp"
#include "kernels/max_pool/cpu/simd/argmax.hpp"
#include "kernels/max_pool/max_pool.hpp"

namespace stepladder::max_pool::inline STEPLADDER_ISA {

// Row r of the window of output (i, j) begins at x[(i · stride_h + r) · pitch + j · stride_w].
struct ForwardPlane {
  const float* x;
  std::int64_t pitch;
  float* y;
  std::uint8_t* argmax;
  std::int64_t writable;  // elements from y on that may be overwritten, also by excess lanes
  // [out_w, rounded up to vectors]: the first and the last column of each window that is not
  // padding; null if there is no padding
  const float *first_inside, *last_inside;
  bool prefetch;
};

// Prefetches x at a fixed distance in memory order: windows alternate between rows, which hardware
// prefetchers do not detect. Non-temporal, to leave the caches to the results.
static inline void prefetch_ahead(const float* row, std::int64_t count) {
  constexpr std::int64_t ahead = 3584, line = 16;  // floats: 14 KiB
  for (std::int64_t k = 0; k < count; k += line) __builtin_prefetch(row + ahead + k, 0, 0);
}

// The maxima of a vector of windows so far, and their positions.
template <class V>
struct RunningMax {
  V value, position;

  void compare(const V& other, const V& other_position) {  // keeps the first of equals
    position = xsimd::select(other > value, other_position, position);
    value = xsimd::max(other, value);
  }
};

// A vector of outputs, from y[at] on.
template <class V>
inline void store(const ForwardPlane& plane, std::int64_t at, const RunningMax<V>& best) {
  store_within(plane.y + at, best.value, plane.writable - at);
  store_argmax_within(plane.argmax + at, best.position, plane.writable - at);
}

// Any window. known_stride (stride_w) and known_window (side of a square window) are 0 if they are
// not compile-time constants.
template <class V, int known_stride, int known_window>
void forward_plane(const Problem& problem, const ForwardPlane& given) {
  constexpr auto lanes = static_cast<std::int64_t>(V::size);
  const Problem p = problem;  // copies, because byte stores may alias anything
  const ForwardPlane plane = given;
  const std::int64_t out_h = p.out_h(), out_w = p.out_w();
  const std::int64_t stride_w = known_stride ? known_stride : p.stride_w;
  const std::int64_t window_h = known_window ? known_window : p.window_h;
  const std::int64_t window_w = known_window ? known_window : p.window_w;
  xsimd::as_integer_t<V> steps;  // 0, stride_w, 2 stride_w, …
  if constexpr (known_stride == 0) {
    std::int32_t multiples[V::size];
    for (std::int32_t lane = 0; lane < lanes; ++lane)
      multiples[lane] = lane * static_cast<std::int32_t>(stride_w);
    steps = xsimd::as_integer_t<V>::load_unaligned(multiples);
  }
  for (std::int64_t i = 0; i < out_h; ++i) {
    if (plane.prefetch)
      prefetch_ahead(plane.x + i * p.stride_h * plane.pitch, p.stride_h * plane.pitch);
    for (std::int64_t j = 0; j < out_w; j += lanes) {
      const float* corner = plane.x + i * p.stride_h * plane.pitch + j * stride_w;
      RunningMax<V> best{strided<known_stride, V>(corner, steps), V(0.0F)};
      for (std::int64_t r = 0; r < window_h; ++r) {
        const float* row = corner + r * plane.pitch;
        const auto position = [&](std::int64_t s) {
          return V(static_cast<float>(r * window_w + s));
        };
        std::int64_t s = 0;
        if constexpr (known_stride == 2)
          for (; s + 1 < window_w; s += 2) {
            const auto [even, odd] = even_odd(row + s, static_cast<V*>(nullptr));
            best.compare(even, position(s));
            best.compare(odd, position(s + 1));
          }
        for (; s < window_w; ++s)
          best.compare(strided<known_stride, V>(row + s, steps), position(s));
      }
      if (plane.first_inside != nullptr) {  // the arg-max of a window of −∞ must not be in padding
        const std::int64_t first_row = std::max<std::int64_t>(0, p.pad_h - i * p.stride_h);
        const V first =
            V(static_cast<float>(first_row * window_w)) + V::load_unaligned(plane.first_inside + j);
        best.position = xsimd::select(best.value == V(-std::numeric_limits<float>::infinity()),
                                      first, best.position);
      }
      store(plane, i * out_w + j, best);
    }
  }
}

// 3x3, stride 2. Consecutive rows of windows share a row of x, whose three columns are compared
// once.
//   in_place   x is an unpadded plane; plane.x is the address of the first window's corner
//   narrow     rows are shorter than a vector: column 3 of a window is column 1 of the next
template <class V, bool in_place, bool narrow>
void forward_plane_3x3(const Problem& problem, const ForwardPlane& given) {
  constexpr auto lanes = static_cast<std::int64_t>(V::size);
  constexpr V* vector = nullptr;
  const Problem p = problem;
  const ForwardPlane plane = given;
  const std::int64_t out_h = p.out_h(), blocks = narrow ? 1 : ceil_div(p.out_w(), lanes);
  // Only rows [first_row, end_row) are read.
  const std::int64_t first_row = in_place ? p.pad_h : 0;
  const std::int64_t end_row = in_place ? p.pad_h + p.height : 2 * out_h + 1;
  // From right to left: the last block writes beyond its row, into the start of the next row, which
  // the first block overwrites later.
  for (std::int64_t j = (blocks - 1) * lanes; j >= 0; j -= lanes) {
    V start(0.0F), end(2.0F);  // first and last column inside the plane
    if constexpr (in_place)
      start = V::load_unaligned(plane.first_inside + j),
      end = V::load_unaligned(plane.last_inside + j);
    const auto column = [&](const V& v, float s) {
      if constexpr (in_place)
        return xsimd::select(start <= V(s) && end >= V(s), v,
                             V(-std::numeric_limits<float>::infinity()));
      else
        return v;
    };
    const auto row_max = [&](std::int64_t row) {
      const float* x = plane.x + row * plane.pitch + 2 * j;
      const auto [first, second] = even_odd(x, vector);
      const V third = narrow ? next(first) : even(x + 2, vector);
      RunningMax<V> best{column(first, 0), start};
      best.compare(column(second, 1), V(1.0F));
      best.compare(column(third, 2), V(2.0F));
      return best;
    };
    const auto inside = [&](std::int64_t row) { return row >= first_row && row < end_row; };
    RunningMax<V> upper{};
    if (inside(0)) upper = row_max(0);
    for (std::int64_t i = 0; i < out_h; ++i) {
      if (plane.prefetch) prefetch_ahead(plane.x + 2 * i * plane.pitch, 2 * plane.pitch);
      RunningMax<V> best = upper;
      bool has_value = inside(2 * i);
      const auto compare = [&](const RunningMax<V>& row, float first_position) {
        if (has_value)
          best.compare(row.value, row.position + V(first_position));
        else
          best = {row.value, row.position + V(first_position)};
        has_value = true;
      };
      if (inside(2 * i + 1)) compare(row_max(2 * i + 1), 3);
      if (inside(2 * i + 2)) compare(upper = row_max(2 * i + 2), 6);
      store(plane, i * p.out_w() + j, best);
    }
  }
}

}  // namespace stepladder::max_pool::inline STEPLADDER_ISA
