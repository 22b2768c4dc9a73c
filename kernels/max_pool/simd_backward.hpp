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

#include "kernels/max_pool/max_pool.hpp"
#include "kernels/max_pool/strided.hpp"

namespace stepladder::max_pool {

// shift(r) = floor((r − pad) / 2)
constexpr std::int64_t shift(std::int64_t place, std::int64_t pad) {
  return (place - pad - ((place - pad) & 1)) / 2;
}

// dy and place of window (i, j) are at i · pitch + j; windows outside the plane have dy = 0. Place is
// std::uint8_t in the operand itself, float in padded lines.
template <class Place>
struct BackwardPlane {
  const float* dy;
  const Place* place;
  std::int64_t pitch;
  float* dx;
  std::int64_t room;  // elements from dx on that may be written before their turn
};

template <class V>
inline V load_place(const float* p) { return V::load_unaligned(p); }
template <class V>
inline V load_place(const std::uint8_t* p) { return load_places(p, static_cast<V*>(nullptr)); }

// A row of dx from its even and odd columns. Writes beyond the row, not beyond `room`.
template <class V>
inline void store_row(float* dx, const V& even, const V& odd, std::int64_t room) {
  constexpr auto lanes = static_cast<std::int64_t>(V::size);
  const auto [low, high] = interleaved(even, odd);
  store_within(dx, low, room);
  store_within(dx + lanes, high, room - lanes);
}

template <Isa isa, class V, int window, int pad, class Place>
void backward_plane(const Problem& p, const BackwardPlane<Place> plane) {
  constexpr auto lanes = static_cast<std::int64_t>(V::size);
  const std::int64_t height = p.height, width = p.width, blocks = ((width + 1) / 2 + lanes - 1) / lanes;
  for (std::int64_t k = 0; 2 * k < height; ++k)
    // From right to left: what the first row writes beyond its end is the start of the second row,
    // whose turn comes after.
    for (std::int64_t m = (blocks - 1) * lanes; m >= 0; m -= lanes) {
      V sum[2][2] = {{V(0.0F), V(0.0F)}, {V(0.0F), V(0.0F)}};  // [row][even or odd column]
#pragma GCC unroll 3
      for (int r = 0; r < window; ++r)
#pragma GCC unroll 3
        for (int s = 0; s < window; ++s) {
          const std::int64_t at = (k - shift(r, pad)) * plane.pitch + m - shift(s, pad);
          const V dy = V::load_unaligned(plane.dy + at), place = load_place<V>(plane.place + at);
          V& to = sum[(r - pad) & 1][(s - pad) & 1];
          to = to + xsimd::select(place == V(static_cast<float>(r * window + s)), dy, V(0.0F));
        }
      const std::int64_t at = 2 * (k * width + m);
      store_row(plane.dx + at, sum[0][0], sum[0][1], plane.room - at);
      if (2 * k + 1 < height) store_row(plane.dx + at + width, sum[1][0], sum[1][1], plane.room - at - width);
    }
}

}  // namespace stepladder::max_pool
