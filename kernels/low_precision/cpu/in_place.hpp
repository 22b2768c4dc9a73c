// Tiles of dot products on operands as they lie: each lane sums every sixteenth group of a pair of
// rows, and the lanes are added at the end. fp16 is widened when it is loaded.
#pragma once

#include <algorithm>

#include "kernels/common/integer_math.hpp"
#include "kernels/low_precision/cpu/dot_formats.hpp"

namespace stepladder::low_precision {

template <class Dot>
inline constexpr std::int64_t loaded_bytes = vector_bytes;  // of a row, for a vector
template <>
inline constexpr std::int64_t loaded_bytes<DotFloat> = vector_bytes / 2;

// The first `count` bytes of a vector; the others are 0.
template <class Dot>
STEPLADDER_DOT_INLINE __m512i load(const std::byte* from, std::int64_t count) {
  const auto mask =
      count >= loaded_bytes<Dot> ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
  if constexpr (std::is_same_v<Dot, DotFloat>)
    return _mm512_castps_si512(
        _mm512_cvtph_ps(_mm256_maskz_loadu_epi8(static_cast<__mmask32>(mask), from)));
  else
    return _mm512_maskz_loadu_epi8(mask, from);
}

STEPLADDER_DOT_INLINE float sum_of_lanes(__m512 lanes) { return _mm512_reduce_add_ps(lanes); }
STEPLADDER_DOT_INLINE std::int32_t sum_of_lanes(__m512i lanes) {
  return _mm512_reduce_add_epi32(lanes);
}

// The tile of `rows` x `columns` elements of C whose first is c; ldc floats from row to row.
template <class Dot, int rows, int columns>
STEPLADDER_DOT_TARGET void multiply_in_place(const std::byte* a, const std::byte* b,
                                             std::int64_t bytes, std::int64_t k, float* c,
                                             std::int64_t ldc) {
  typename Dot::Sums sums[rows][columns];
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) sums[i][j] = Dot::zero();
  for (std::int64_t at = 0; at < bytes; at += loaded_bytes<Dot>) {
    __m512i of_b[columns];
    for (int j = 0; j < columns; ++j) of_b[j] = load<Dot>(b + j * bytes + at, bytes - at);
    for (int i = 0; i < rows; ++i) {
      const __m512i of_a = load<Dot>(a + i * bytes + at, bytes - at);
      for (int j = 0; j < columns; ++j) sums[i][j] = Dot::add(sums[i][j], of_a, of_b[j]);
    }
  }
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      const auto sum = sum_of_lanes(sums[i][j]);
      c[i * ldc + j] = std::is_same_v<Dot, DotBits>
                           ? static_cast<float>(k - 2 * static_cast<std::int64_t>(sum))
                           : static_cast<float>(sum);
    }
}

// C in tiles of side x side; what is left over has tiles of a single element.
template <class Dot, int side>
STEPLADDER_DOT_TARGET void multiply_in_place(const Problem& p, const Operands& o) {
  const std::int64_t bytes = row_bytes(p);
  const auto* a = static_cast<const std::byte*>(o.a);
  const auto* b = static_cast<const std::byte*>(o.b);
  const auto multiply_tile = [&]<int n>(std::int64_t i, std::int64_t j) STEPLADDER_DOT_TARGET {
    multiply_in_place<Dot, n, n>(a + i * bytes, b + j * bytes, bytes, p.k, o.c + i * p.n + j, p.n);
  };
  const std::int64_t m = p.m / side * side, n = p.n / side * side;  // in whole tiles
  for (std::int64_t i = 0; i < m; i += side)
    for (std::int64_t j = 0; j < n; j += side) multiply_tile.template operator()<side>(i, j);
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = i < m ? n : 0; j < p.n; ++j) multiply_tile.template operator()<1>(i, j);
}

}  // namespace stepladder::low_precision
