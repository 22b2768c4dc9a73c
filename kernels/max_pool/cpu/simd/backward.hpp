// Backward as a gather, for windows of 2x2 and 3x3 with stride 2. Each dx is computed from the
// windows that cover it and written once:
//
//   dx[h, c] = sum of (argmax[i, j] == r · window + s ? dy[i, j] : 0) over windows (i, j) and
//              positions (r, s) with 2 i − pad + r = h and 2 j − pad + s = c
//
// One vector holds the columns 2 m, 2 m + 2, …, a second one those between, for two rows at once:
//
//   row 2 k        even  odd  even  odd  …      position (r, s) adds to row 2 k + (r − pad) mod 2
//   row 2 k + 1    even  odd  even  odd  …      and reads the window (k − shift(r), m − shift(s))
#pragma once

#include <utility>

#include "kernels/common/integer_math.hpp"
#include "kernels/max_pool/cpu/simd/argmax.hpp"
#include "kernels/max_pool/max_pool.hpp"

namespace stepladder::max_pool::inline STEPLADDER_ISA {

// shift(r) = floor((r − pad) / 2)
constexpr std::int64_t shift(std::int64_t r, std::int64_t pad) {
  return (r - pad - ((r - pad) & 1)) / 2;
}

struct BackwardPlane {
  const float* dy;  // window (i, j) has dy[i · pitch + j] and argmax[i · pitch + j]
  const std::uint8_t* argmax;
  std::int64_t pitch;
  const float* zero_dy;  // a row of zeros, for windows above the first row and below the last
  const std::uint8_t* zero_argmax;
  // [m], for the smallest shift and the next: all bits set if the window m − shift is inside the
  // row, otherwise 0
  const float* inside[2];
  float* dx;
  std::int64_t writable;  // elements from dx on that may be overwritten, also by excess lanes
};

// Vectors of windows of one row, for the smallest shift and the next.
template <class V>
struct Windows {
  V dy[2], argmax[2];
};

// Stores a row of dx from its even and odd columns. May write beyond the row, up to `writable`.
template <bool past_caches, class V>
inline void store_row(float* dx, const V& even, const V& odd, std::int64_t writable) {
  constexpr auto lanes = static_cast<std::int64_t>(V::size);
  const auto [low, high] = interleaved(even, odd);
  if constexpr (past_caches) {
    stream(dx, low);
    stream(dx + lanes, high);
  } else {
    store_within(dx, low, writable);
    store_within(dx + lanes, high, writable - lanes);
  }
}

// past_caches: non-temporal stores; rows are whole pairs of vectors and dx is aligned to them.
template <class V, int window, int pad, bool past_caches>
void backward_plane(const Problem& p, const BackwardPlane plane) {
  constexpr auto lanes = static_cast<std::int64_t>(V::size);
  constexpr std::int64_t smallest = shift(0, pad),
                         shifts = shift(window - 1, pad) - smallest + 1;  // 1 or 2
  const std::int64_t height = p.height, width = p.width, out_h = p.out_h();

  const auto load_windows = [&](std::int64_t i, std::int64_t m) {
    const bool inside = i >= 0 && i < out_h;
    const float* dy = inside ? plane.dy + i * plane.pitch : plane.zero_dy;
    const std::uint8_t* argmax = inside ? plane.argmax + i * plane.pitch : plane.zero_argmax;
    Windows<V> row;
    for (std::int64_t t = 0; t < shifts; ++t) {
      const std::int64_t j = m - smallest - t;
      row.dy[t] = V::load_unaligned(dy + j) & V::load_unaligned(plane.inside[t] + m);
      row.argmax[t] = load_argmax(argmax + j, static_cast<V*>(nullptr));
    }
    return row;
  };

  // From right to left: the last block writes beyond its row, into the start of the next row, which
  // the first block overwrites later.
  for (std::int64_t m = (ceil_div(width, 2) - 1) / lanes * lanes; m >= 0; m -= lanes) {
    Windows<V> above = load_windows(-smallest - 1, m);
    for (std::int64_t k = 0; 2 * k < height; ++k) {
      const Windows<V> below = load_windows(k - smallest, m);
      V sum[2][2];  // [row][even or odd column]
      const auto add = [&]<int position>(std::integral_constant<int, position>) {
        constexpr int r = position / window, s = position % window;
        const Windows<V>& row = shift(r, pad) == smallest ? below : above;
        constexpr auto t = shift(s, pad) - smallest;
        const V dy = where<V>(row.argmax[t] == V(static_cast<float>(position)), row.dy[t]);
        V& to = sum[(r - pad) & 1][(s - pad) & 1];
        to = r < 2 && s < 2 ? dy : V(to + dy);  // r, s = 0 and 1 are the first of their parity
      };
      [&]<int... position>(std::integer_sequence<int, position...>) {
        (add(std::integral_constant<int, position>{}), ...);
      }
      (std::make_integer_sequence<int, window * window>{});
      above = below;
      const std::int64_t at = 2 * (k * width + m);
      store_row<past_caches>(plane.dx + at, sum[0][0], sum[0][1], plane.writable - at);
      if (2 * k + 1 < height)
        store_row<past_caches>(plane.dx + at + width, sum[1][0], sum[1][1],
                               plane.writable - at - width);
    }
  }
}

}  // namespace stepladder::max_pool::inline STEPLADDER_ISA
