// Forward on vectors along the output row. A lane belongs to an output, and place by place of the
// window a vector of values is compared with the best so far:
//
//   x      a b c d e f g h …      stride 2, window 2: lanes a c e g …, then b d f h …, then the next row
//   y      0   1   2   3   …
//
// There are no tests for padding or for the end of a row: planes with padding are first copied into
// lines that have it, and what a row's last vector writes beyond the row is overwritten in its turn.
// Windows of 3x3 with stride 2 read them where they are: lanes that would see what lies beside the
// plane take −∞ instead, and rows above and below are left out.
#pragma once

#include <algorithm>
#include <limits>

#include "kernels/max_pool/max_pool.hpp"
#include "kernels/max_pool/cpu/simd/strided.hpp"

namespace stepladder::max_pool::inline STEPLADDER_ISA {

// Row r of the window of output (i, j) begins at x[(i · stride_h + r) · pitch + j · stride_w].
struct ForwardPlane {
  const float* x;
  std::int64_t pitch;
  float* y;
  std::uint8_t* argmax;
  std::int64_t room;          // elements from y on that may be written before their turn
  const float* first_inside;  // [out_w, rounded up]: the first and the last column of each window
  const float* last_inside;   // that is not padding; null where there is no padding
  bool announced;             // rows are to be announced
};

// Announces rows of x that are some way ahead of these, in the order of memory: windows take several
// rows in turns, which the processor does not see through. Past the caches that results may need.
static inline void announce(const float* row, std::int64_t count) {
  constexpr std::int64_t ahead = 3584, line = 16;  // floats: 14 KiB
  for (std::int64_t k = 0; k < count; k += line)
    _mm_prefetch(reinterpret_cast<const char*>(row + ahead + k), _MM_HINT_NTA);
}

// The largest values of a vector of windows, or of a row of them, and their places.
template <class V>
struct Best {
  V value, place;

  void compare(const V& other, const V& other_place) {  // the first of equals stays
    place = xsimd::select(other > value, other_place, place);
    value = xsimd::max(other, value);
  }
};

// A vector of outputs, from y[at] on.
template <class V>
inline void store(const ForwardPlane& plane, std::int64_t at, const Best<V>& best) {
  store_within(plane.y + at, best.value, plane.room - at);
  store_places_within(plane.argmax + at, best.place, plane.room - at);
}

// Any window; stride_w and a square window's side where they are known when compiling, otherwise 0.
template <class V, int known_stride, int known_window>
void forward_plane(const Problem& problem, const ForwardPlane& given) {
  constexpr auto lanes = static_cast<std::int64_t>(V::size);
  const Problem p = problem;  // copies: stores of bytes may alias everything
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
    if (plane.announced) announce(plane.x + i * p.stride_h * plane.pitch, p.stride_h * plane.pitch);
    for (std::int64_t j = 0; j < out_w; j += lanes) {
      const float* corner = plane.x + i * p.stride_h * plane.pitch + j * stride_w;
      Best<V> best{strided<known_stride, V>(corner, steps), V(0.0F)};
      for (std::int64_t r = 0; r < window_h; ++r) {
        const float* row = corner + r * plane.pitch;
        const auto place = [&](std::int64_t s) { return V(static_cast<float>(r * window_w + s)); };
        std::int64_t s = 0;
        if constexpr (known_stride == 2)
          for (; s + 1 < window_w; s += 2) {
            const auto [even, odd] = even_odd(row + s, static_cast<V*>(nullptr));
            best.compare(even, place(s));
            best.compare(odd, place(s + 1));
          }
        for (; s < window_w; ++s) best.compare(strided<known_stride, V>(row + s, steps), place(s));
      }
      if (plane.first_inside != nullptr) {  // a window of nothing but −∞ must not name the padding
        const std::int64_t first_row = std::max<std::int64_t>(0, p.pad_h - i * p.stride_h);
        const V first =
            V(static_cast<float>(first_row * window_w)) + V::load_unaligned(plane.first_inside + j);
        best.place = xsimd::select(best.value == V(-std::numeric_limits<float>::infinity()), first,
                                   best.place);
      }
      store(plane, i * out_w + j, best);
    }
  }
}

// 3x3, stride 2. Windows above each other share a row of x: its three columns are compared once.
//   beside   x has no padding that could be read, and begins where it would
//   narrow   a row is shorter than a vector: the third column of a window is the first of the next
template <class V, bool beside, bool narrow>
void forward_plane_3x3(const Problem& problem, const ForwardPlane& given) {
  constexpr auto lanes = static_cast<std::int64_t>(V::size);
  constexpr V* vector = nullptr;
  const Problem p = problem;
  const ForwardPlane plane = given;
  const std::int64_t out_h = p.out_h(), blocks = narrow ? 1 : (p.out_w() + lanes - 1) / lanes;
  const std::int64_t first_row = beside ? p.pad_h : 0;  // rows outside, [0, first_row) and from
  const std::int64_t end_row = beside ? p.pad_h + p.height : 2 * out_h + 1;  // end_row on, not read
  // From right to left: what the last block writes beyond its row is the start of the next row, in the
  // first block, whose turn comes after.
  for (std::int64_t j = (blocks - 1) * lanes; j >= 0; j -= lanes) {
    V start(0.0F), end(2.0F);  // columns on the image
    if constexpr (beside)
      start = V::load_unaligned(plane.first_inside + j),
      end = V::load_unaligned(plane.last_inside + j);
    const auto column = [&](const V& v, float s) {
      if constexpr (beside)
        return xsimd::select(start <= V(s) && end >= V(s), v,
                             V(-std::numeric_limits<float>::infinity()));
      else
        return v;
    };
    const auto best_of_row = [&](std::int64_t row) {
      const float* x = plane.x + row * plane.pitch + 2 * j;
      const auto [first, second] = even_odd(x, vector);
      const V third = narrow ? next(first) : even(x + 2, vector);
      Best<V> best{column(first, 0), start};
      best.compare(column(second, 1), V(1.0F));
      best.compare(column(third, 2), V(2.0F));
      return best;
    };
    const auto inside = [&](std::int64_t row) { return row >= first_row && row < end_row; };
    Best<V> upper{};
    if (inside(0)) upper = best_of_row(0);
    for (std::int64_t i = 0; i < out_h; ++i) {
      if (plane.announced) announce(plane.x + 2 * i * plane.pitch, 2 * plane.pitch);
      Best<V> best = upper;
      bool found = inside(2 * i);
      const auto compare = [&](const Best<V>& row, float first_place) {
        if (found)
          best.compare(row.value, row.place + V(first_place));
        else
          best = {row.value, row.place + V(first_place)};
        found = true;
      };
      if (inside(2 * i + 1)) compare(best_of_row(2 * i + 1), 3);
      if (inside(2 * i + 2)) compare(upper = best_of_row(2 * i + 2), 6);
      store(plane, i * p.out_w() + j, best);
    }
  }
}

}  // namespace stepladder::max_pool::inline STEPLADDER_ISA
