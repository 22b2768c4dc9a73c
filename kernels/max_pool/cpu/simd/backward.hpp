// Backward without a scatter, for the windows that networks have: 2x2 and 3x3, stride 2. Each dx asks
// the windows that cover it whether they found their maximum here, and is written once:
//
//   dx[h, c] = sum over windows (i, j) and places (r, s) with 2 i − pad + r = h and 2 j − pad + s = c
//              of (argmax[i, j] == r · window + s ? dy[i, j] : 0)
//
// A vector takes the columns 2 m, 2 m + 2, …, a second one those between; both for two rows at once:
//
//   row 2 k        even  odd  even  odd  …      place (r, s) belongs to row 2 k + (r − pad) mod 2 and
//   row 2 k + 1    even  odd  even  odd  …      to the window (k − shift(r), m − shift(s))
#pragma once

#include <utility>

#include "kernels/max_pool/max_pool.hpp"
#include "kernels/max_pool/cpu/simd/strided.hpp"

namespace stepladder::max_pool::inline STEPLADDER_ISA {

// shift(r) = floor((r − pad) / 2)
constexpr std::int64_t shift(std::int64_t place, std::int64_t pad) {
  return (place - pad - ((place - pad) & 1)) / 2;
}

struct BackwardPlane {
  const float* dy;  // of window (i, j): dy[i · pitch + j], and argmax likewise
  const std::uint8_t* argmax;
  std::int64_t pitch;
  const float* no_dy;  // a row of zeros, for windows above the first row and below the last
  const std::uint8_t* no_argmax;
  const float*
      inside[2];  // [m]: all bits set where the window m − shift is inside the row, otherwise
                  // none; for the smallest shift and the next
  float* dx;
  std::int64_t room;  // elements from dx on that may be written before their turn
};

// A vector of windows of one row, for the columns that the smallest shift leads to and the next.
template <class V>
struct Windows {
  V dy[2], place[2];
};

// A row of dx from its even and odd columns. Writes beyond the row, not beyond `room`.
template <bool past_caches, class V>
inline void store_row(float* dx, const V& even, const V& odd, std::int64_t room) {
  constexpr auto lanes = static_cast<std::int64_t>(V::size);
  const auto [low, high] = interleaved(even, odd);
  if constexpr (past_caches) {
    stream(dx, low);
    stream(dx + lanes, high);
  } else {
    store_within(dx, low, room);
    store_within(dx + lanes, high, room - lanes);
  }
}

// past_caches: vectors end with the rows, and dx is aligned to them; see stream().
template <class V, int window, int pad, bool past_caches>
void backward_plane(const Problem& p, const BackwardPlane plane) {
  constexpr auto lanes = static_cast<std::int64_t>(V::size);
  constexpr std::int64_t smallest = shift(0, pad),
                         shifts = shift(window - 1, pad) - smallest + 1;  // 1 or 2
  const std::int64_t height = p.height, width = p.width, out_h = p.out_h();

  const auto ask = [&](std::int64_t i, std::int64_t m) {
    const bool inside = i >= 0 && i < out_h;
    const float* dy = inside ? plane.dy + i * plane.pitch : plane.no_dy;
    const std::uint8_t* argmax = inside ? plane.argmax + i * plane.pitch : plane.no_argmax;
    Windows<V> row;
    for (std::int64_t t = 0; t < shifts; ++t) {
      const std::int64_t j = m - smallest - t;
      row.dy[t] = V::load_unaligned(dy + j) & V::load_unaligned(plane.inside[t] + m);
      row.place[t] = load_places(argmax + j, static_cast<V*>(nullptr));
    }
    return row;
  };

  // From right to left: what the last block writes beyond a row is the start of the next row, in the
  // first block, whose turn comes after.
  for (std::int64_t m = ((width + 1) / 2 - 1) / lanes * lanes; m >= 0; m -= lanes) {
    Windows<V> above = ask(-smallest - 1, m);
    for (std::int64_t k = 0; 2 * k < height; ++k) {
      const Windows<V> below = ask(k - smallest, m);
      V sum[2][2];  // [row][even or odd column]
      const auto add = [&]<int place>(std::integral_constant<int, place>) {
        constexpr int r = place / window, s = place % window;
        const Windows<V>& row = shift(r, pad) == smallest ? below : above;
        constexpr auto t = shift(s, pad) - smallest;
        const V here = where<V>(row.place[t] == V(static_cast<float>(place)), row.dy[t]);
        V& to = sum[(r - pad) & 1][(s - pad) & 1];
        to = r < 2 && s < 2 ? here : V(to + here);  // places 0 and 1 are the first of their parity
      };
      [&]<int... place>(std::integer_sequence<int, place...>) {
        (add(std::integral_constant<int, place>{}), ...);
      }
      (std::make_integer_sequence<int, window * window>{});
      above = below;
      const std::int64_t at = 2 * (k * width + m);
      store_row<past_caches>(plane.dx + at, sum[0][0], sum[0][1], plane.room - at);
      if (2 * k + 1 < height)
        store_row<past_caches>(plane.dx + at + width, sum[1][0], sum[1][1],
                               plane.room - at - width);
    }
  }
}

}  // namespace stepladder::max_pool::inline STEPLADDER_ISA
