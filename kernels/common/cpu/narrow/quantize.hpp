// Quantization to int8 with one step for a row, a channel or an image: x is stored as the integer
// nearest to x / step, between -127 and 127. The step is the smallest power of two that allows it,
// so that small integers are exact and the product with 1 / step is too.
//
// Error of a sum of k products: at most quantization_error · k · max|a| · max|b|. A step is
// below 2 max / 127, and an operand differs by half a step at most:
//   |a b - a' b'| <= |a| db + |b| da + da db,   da < max|a| / 127,   db < max|b| / 127
//
// Instructions multiply uint8 by int8. Activations are stored with 128 added, and sums of products
// begin at -128 times the sum of the weights.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "kernels/common/cpu/extensions.hpp"
#include "kernels/common/cpu/narrow/dot_products.hpp"
#include "kernels/common/variant.hpp"

namespace stepladder::narrow {

inline constexpr double quantization_error = 2.0 / 127 + 1.0 / (127 * 127);
inline constexpr int quantized_zero = 128;  // of an activation

// For rungs of quantized weights; terms: of a sum. Throws Unsupported, or NotHere on a CPU without
// the instruction.
inline void require_quantized(bool is_forward, std::int64_t terms) {
  constexpr std::int64_t most_terms = 1 << 16;  // their sum fits 32 bits
  require_here(Extension::avx512_vnni);
  if (!is_forward) throw Unsupported("quantized weights are for inference: supports forward only");
  if (terms > most_terms)
    throw Unsupported("sums of more than 65,536 products may not fit 32 bits");
}

struct Step {
  float size, inverse;
};

// largest: the bits of the largest magnitude. A NaN or an infinity among the values makes the step
// NaN, and with it every result.
inline Step step_of(std::uint32_t largest) {
  constexpr std::uint32_t infinity = 0x7f800000, most = 0x7e0000;  // 127/64 as a fraction of 2
  if (largest >= infinity) return {std::numeric_limits<float>::quiet_NaN(), 0.0F};
  const int exponent = static_cast<int>(largest >> 23U) - ((largest & 0x7fffffU) > most ? 5 : 6);
  const auto biased = static_cast<std::uint32_t>(std::max(exponent, 1));
  return {std::bit_cast<float>(biased << 23U), std::bit_cast<float>((254 - biased) << 23U)};
}

// The larger magnitudes, as bits, which order like the magnitudes.
STEPLADDER_DOT_INLINE __m512i larger(__m512i largest, __m512 values) {
  return _mm512_max_epu32(
      largest, _mm512_and_si512(_mm512_castps_si512(values), _mm512_set1_epi32(0x7fffffff)));
}

// So many elements take as long to go through as a fork and join.
inline constexpr std::int64_t elements_of_a_fork = 1 << 16;

// Bits of the largest magnitude of values[0 … count).
STEPLADDER_DOT_TARGET inline std::uint32_t largest_magnitude(const float* values,
                                                             std::int64_t count) {
  __m512i largest = _mm512_setzero_si512();
  for (std::int64_t i = 0; i < count; i += lanes)
    largest = larger(largest, _mm512_maskz_loadu_ps(first_lanes(count - i), values + i));
  return _mm512_reduce_max_epu32(largest);
}

STEPLADDER_DOT_INLINE __m512i quantized(__m512 values, __m512 inverse) {
  return _mm512_cvtps_epi32(_mm512_mul_ps(values, inverse));
}

// The low bytes of four integers side by side.
STEPLADDER_DOT_INLINE __m512i quads(const __m512i (&of)[4]) {
  const __m512i low = _mm512_set1_epi32(0xff);
  const __m512i first = _mm512_or_si512(_mm512_and_si512(of[0], low),
                                        _mm512_slli_epi32(_mm512_and_si512(of[1], low), 8));
  return _mm512_or_si512(first, _mm512_or_si512(_mm512_slli_epi32(_mm512_and_si512(of[2], low), 16),
                                                _mm512_slli_epi32(of[3], 24)));
}

// int8 as uint8 with 128 added.
STEPLADDER_DOT_INLINE __m512i with_offset(__m512i bytes) {
  return _mm512_xor_si512(bytes, _mm512_set1_epi32(static_cast<int>(0x80808080)));
}

}  // namespace stepladder::narrow
