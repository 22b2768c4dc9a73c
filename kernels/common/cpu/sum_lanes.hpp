// The sums of the lanes of as many vectors as a vector has lanes. One at a time they would take
// log2(lanes) dependent shuffles and additions each; together, half of them fill a vector after the
// first addition, and 16 vectors of AVX-512 take 45 instructions.
#pragma once

#include "kernels/common/cpu/instructions.hpp"
#include "kernels/common/cpu/simd.hpp"

namespace stepladder::inline STEPLADDER_ISA {

namespace sum_lanes_detail {

// Element r of each 128-bit part: the sum of that part of v[r].
#if defined(__AVX512F__)
inline __m512 add_parts(__m512 a, __m512 b) {  // 256-bit halves: those of a, then those of b
  return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
}
inline __m512 add_quarters(__m512 a, __m512 b, __m512 c, __m512 d) {
  const __m512 ab = add_parts(a, b), cd = add_parts(c, d);
  return _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xDD));
}
inline __m512 sum_parts(__m512 a, __m512 b, __m512 c, __m512 d) {
  const __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
  const __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
  return _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xEE));
}
#elif defined(__AVX__)
inline __m256 add_halves(__m256 a, __m256 b) {
  return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}
inline __m256 sum_parts(__m256 a, __m256 b, __m256 c, __m256 d) {
  const __m256 ab = _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
  const __m256 cd = _mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
  return _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xEE));
}
#elif defined(__aarch64__)
inline float32x4_t sum_parts(float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t d) {
  return vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d));
}
#else
inline __m128 sum_parts(__m128 a, __m128 b, __m128 c, __m128 d) {
  const __m128 ab = _mm_add_ps(_mm_unpacklo_ps(a, b), _mm_unpackhi_ps(a, b));
  const __m128 cd = _mm_add_ps(_mm_unpacklo_ps(c, d), _mm_unpackhi_ps(c, d));
  return _mm_add_ps(_mm_movelh_ps(ab, cd), _mm_movehl_ps(cd, ab));
}
#endif

}  // namespace sum_lanes_detail

// Lane i of the result: the sum of the lanes of v[i].
[[gnu::always_inline]] inline Vector sum_lanes(const Vector (&v)[Vector::size]) {
  using namespace sum_lanes_detail;
#if defined(__AVX512F__)
  return sum_parts(add_quarters(v[0], v[4], v[8], v[12]), add_quarters(v[1], v[5], v[9], v[13]),
                   add_quarters(v[2], v[6], v[10], v[14]), add_quarters(v[3], v[7], v[11], v[15]));
#elif defined(__AVX__)
  return sum_parts(add_halves(v[0], v[4]), add_halves(v[1], v[5]), add_halves(v[2], v[6]),
                   add_halves(v[3], v[7]));
#else
  return sum_parts(v[0], v[1], v[2], v[3]);
#endif
}

}  // namespace stepladder::inline STEPLADDER_ISA
