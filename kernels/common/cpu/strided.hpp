// Loads and stores with stride 2 for each vector width. xsimd does not have these operations, so
// they are intrinsics.
//
//   even(p)                  p[0], p[2], …; reads nothing beyond the last of them
//   even_odd(p)              p[0], p[2], … and p[1], p[3], …
//   separated(low, high)     the same from two vectors
//   next(v)                  moves lane i + 1 to lane i; the last lane is unspecified
//   previous(v)              moves lane i - 1 to lane i, and the last lane to lane 0
//   interleaved(even, odd)   even[0], odd[0], even[1], odd[1], … in two vectors
//   stream(p, v)             non-temporal store; p is aligned to the vector
#pragma once

#include <cstdint>
#include <utility>

#include "kernels/common/cpu/instructions.hpp"
#include "kernels/common/cpu/partial_vector.hpp"
#include "kernels/common/cpu/simd.hpp"

namespace stepladder::inline STEPLADDER_ISA {

#if defined(__aarch64__)
using Vector4 = xsimd::batch<float, xsimd::neon64>;

inline Vector4 even(const float* p, Vector4*) {
  return vuzp1q_f32(vld1q_f32(p), vextq_f32(vld1q_f32(p + 3), vld1q_f32(p + 3), 1));
}
inline std::pair<Vector4, Vector4> separated(Vector4 low, Vector4 high) {
  return {vuzp1q_f32(low, high), vuzp2q_f32(low, high)};
}
inline Vector4 next(Vector4 v) { return vextq_f32(v, v, 1); }
inline Vector4 previous(Vector4 v) { return vextq_f32(v, v, 3); }
inline void stream(float* p, Vector4 v) { v.store_aligned(p); }
inline std::pair<Vector4, Vector4> interleaved(Vector4 even, Vector4 odd) {
  return {vzip1q_f32(even, odd), vzip2q_f32(even, odd)};
}
#else
using Vector4 = xsimd::batch<float, xsimd::sse4_2>;

// The second load begins one float early, so that its last lane is the last element needed.
inline Vector4 even(const float* p, Vector4*) {
  return _mm_shuffle_ps(_mm_loadu_ps(p), _mm_loadu_ps(p + 3), _MM_SHUFFLE(3, 1, 2, 0));
}
inline std::pair<Vector4, Vector4> separated(Vector4 low, Vector4 high) {
  return {_mm_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0)),
          _mm_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1))};
}
inline Vector4 next(Vector4 v) { return _mm_shuffle_ps(v, v, _MM_SHUFFLE(3, 3, 2, 1)); }
inline Vector4 previous(Vector4 v) { return _mm_shuffle_ps(v, v, _MM_SHUFFLE(2, 1, 0, 3)); }
inline void stream(float* p, Vector4 v) { _mm_stream_ps(p, v); }
inline std::pair<Vector4, Vector4> interleaved(Vector4 even, Vector4 odd) {
  return {_mm_unpacklo_ps(even, odd), _mm_unpackhi_ps(even, odd)};
}
#endif

#if defined(__AVX2__)
using Vector8 = xsimd::batch<float, xsimd::fma3<xsimd::avx2>>;

inline Vector8 sort_quarters(__m256 v) {  // 0 1 4 5 | 2 3 6 7 -> 0 1 2 3 | 4 5 6 7
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), _MM_SHUFFLE(3, 1, 2, 0)));
}
inline Vector8 even(const float* p, Vector8*) {
  return sort_quarters(
      _mm256_shuffle_ps(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 7), _MM_SHUFFLE(3, 1, 2, 0)));
}
inline std::pair<Vector8, Vector8> separated(Vector8 low, Vector8 high) {
  return {sort_quarters(_mm256_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0))),
          sort_quarters(_mm256_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1)))};
}
inline Vector8 next(Vector8 v) {
  return _mm256_permutevar8x32_ps(v, _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 7));
}
inline Vector8 previous(Vector8 v) {
  return _mm256_permutevar8x32_ps(v, _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6));
}
inline void stream(float* p, Vector8 v) { _mm256_stream_ps(p, v); }
inline std::pair<Vector8, Vector8> interleaved(Vector8 even, Vector8 odd) {
  const __m256 low = _mm256_unpacklo_ps(even, odd), high = _mm256_unpackhi_ps(even, odd);
  return {_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31)};
}
#endif

#if defined(__AVX512F__)
using Vector16 = xsimd::batch<float, xsimd::avx512dq>;

inline Vector16 even(const float* p, Vector16*) {
  const __m512i order =
      _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
  return _mm512_permutex2var_ps(_mm512_loadu_ps(p), order, _mm512_loadu_ps(p + 15));
}
inline std::pair<Vector16, Vector16> separated(Vector16 low, Vector16 high) {
  const __m512i evens =
      _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odds = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  return {_mm512_permutex2var_ps(low, evens, high), _mm512_permutex2var_ps(low, odds, high)};
}
inline Vector16 next(Vector16 v) {
  const __m512i bits = _mm512_castps_si512(v);
  return _mm512_castsi512_ps(_mm512_alignr_epi32(bits, bits, 1));
}
inline Vector16 previous(Vector16 v) {
  const __m512i bits = _mm512_castps_si512(v);
  return _mm512_castsi512_ps(_mm512_alignr_epi32(bits, bits, 15));
}
inline void stream(float* p, Vector16 v) { _mm512_stream_ps(p, v); }
inline std::pair<Vector16, Vector16> interleaved(Vector16 even, Vector16 odd) {
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i high =
      _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  return {_mm512_permutex2var_ps(even, low, odd), _mm512_permutex2var_ps(even, high, odd)};
}
#endif

template <class V>
inline std::pair<V, V> even_odd(const float* p, V*) {
  return separated(V(V::load_unaligned(p)), V(V::load_unaligned(p + V::size)));
}

// p[0], p[step], p[2 step], …; steps: 0, step, 2 step, … `stride` is 0 if step is not a constant.
template <int stride, class V>
inline V strided(const float* p, const xsimd::as_integer_t<V>& steps) {
  if constexpr (stride == 1)
    return V::load_unaligned(p);
  else if constexpr (stride == 2)
    return even(p, static_cast<V*>(nullptr));
  else
    return V::gather(p, steps);
}

// Stores the first min(writable, lanes) elements.
template <class V>
inline void store_within(float* p, const V& v, std::int64_t writable) {
  if (writable >= static_cast<std::int64_t>(V::size)) return v.store_unaligned(p);
  if (writable > 0) store_partial(p, v, writable);
}

// Calls `use` with a null pointer of the vector type for rows of `count` elements: the narrowest
// that holds a whole row, otherwise the widest.
template <class Use>
inline void with_width([[maybe_unused]] std::int64_t count, const Use& use) {
#if defined(__AVX512F__)
  if (build_isa == Isa::avx512 && count > 8) return use(static_cast<Vector16*>(nullptr));
#endif
#if defined(__AVX2__)
  if (build_isa != Isa::sse42 && count > 4) return use(static_cast<Vector8*>(nullptr));
#endif
  use(static_cast<Vector4*>(nullptr));
}

}  // namespace stepladder::inline STEPLADDER_ISA
