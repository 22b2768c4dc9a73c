// Loads and stores with stride 2, and of one-byte arg-max, for each vector width. xsimd does not
// have these operations, so they are intrinsics.
//
//   even(p)                      p[0], p[2], …; reads nothing beyond the last of them
//   even_odd(p)                  p[0], p[2], … and p[1], p[3], …
//   next(v)                      moves lane i + 1 to lane i; the last lane is unspecified
//   interleaved(even, odd)       even[0], odd[0], even[1], odd[1], … in two vectors
//   stream(p, v)                 non-temporal store; p is aligned to the vector
//   load_argmax / store_argmax   converts a vector of floats from and to bytes
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/common/cpu/partial_vector.hpp"
#include "kernels/common/cpu/simd.hpp"

namespace stepladder::max_pool::inline STEPLADDER_ISA {

using Vector4 = xsimd::batch<float, xsimd::sse4_2>;

// The second load begins one float early, so that its last lane is the last element needed.
inline Vector4 even(const float* p, Vector4*) {
  return _mm_shuffle_ps(_mm_loadu_ps(p), _mm_loadu_ps(p + 3), _MM_SHUFFLE(3, 1, 2, 0));
}
inline std::pair<Vector4, Vector4> even_odd(const float* p, Vector4*) {
  const __m128 low = _mm_loadu_ps(p), high = _mm_loadu_ps(p + 4);
  return {_mm_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0)),
          _mm_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1))};
}
inline Vector4 next(Vector4 v) { return _mm_shuffle_ps(v, v, _MM_SHUFFLE(3, 3, 2, 1)); }
inline void stream(float* p, Vector4 v) { _mm_stream_ps(p, v); }
inline std::pair<Vector4, Vector4> interleaved(Vector4 even, Vector4 odd) {
  return {_mm_unpacklo_ps(even, odd), _mm_unpackhi_ps(even, odd)};
}
inline Vector4 load_argmax(const std::uint8_t* p, Vector4*) {
  std::int32_t bytes;
  std::memcpy(&bytes, p, sizeof bytes);
  return _mm_cvtepi32_ps(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(bytes)));
}
inline void store_argmax(std::uint8_t* p, Vector4 argmax) {
  const __m128i words = _mm_packus_epi32(_mm_cvttps_epi32(argmax), _mm_setzero_si128());
  const std::int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
  std::memcpy(p, &bytes, sizeof bytes);
}

#if defined(__AVX2__)
using Vector8 = xsimd::batch<float, xsimd::fma3<xsimd::avx2>>;

inline Vector8 sort_quarters(__m256 v) {  // 0 1 4 5 | 2 3 6 7 -> 0 1 2 3 | 4 5 6 7
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), _MM_SHUFFLE(3, 1, 2, 0)));
}
inline Vector8 even(const float* p, Vector8*) {
  return sort_quarters(
      _mm256_shuffle_ps(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 7), _MM_SHUFFLE(3, 1, 2, 0)));
}
inline std::pair<Vector8, Vector8> even_odd(const float* p, Vector8*) {
  const __m256 low = _mm256_loadu_ps(p), high = _mm256_loadu_ps(p + 8);
  return {sort_quarters(_mm256_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0))),
          sort_quarters(_mm256_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1)))};
}
inline Vector8 next(Vector8 v) {
  return _mm256_permutevar8x32_ps(v, _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 7));
}
inline void stream(float* p, Vector8 v) { _mm256_stream_ps(p, v); }
inline std::pair<Vector8, Vector8> interleaved(Vector8 even, Vector8 odd) {
  const __m256 low = _mm256_unpacklo_ps(even, odd), high = _mm256_unpackhi_ps(even, odd);
  return {_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31)};
}
inline Vector8 load_argmax(const std::uint8_t* p, Vector8*) {
  return _mm256_cvtepi32_ps(
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
inline void store_argmax(std::uint8_t* p, Vector8 argmax) {
  const __m256i integers = _mm256_cvttps_epi32(argmax);
  const __m128i words =
      _mm_packus_epi32(_mm256_castsi256_si128(integers), _mm256_extracti128_si256(integers, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi16(words, words));
}
#endif

#if defined(__AVX512F__)
using Vector16 = xsimd::batch<float, xsimd::avx512dq>;

inline Vector16 even(const float* p, Vector16*) {
  const __m512i order =
      _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
  return _mm512_permutex2var_ps(_mm512_loadu_ps(p), order, _mm512_loadu_ps(p + 15));
}
inline std::pair<Vector16, Vector16> even_odd(const float* p, Vector16*) {
  const __m512i evens =
      _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odds = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  const __m512 low = _mm512_loadu_ps(p), high = _mm512_loadu_ps(p + 16);
  return {_mm512_permutex2var_ps(low, evens, high), _mm512_permutex2var_ps(low, odds, high)};
}
inline Vector16 next(Vector16 v) {
  const __m512i bits = _mm512_castps_si512(v);
  return _mm512_castsi512_ps(_mm512_alignr_epi32(bits, bits, 1));
}
inline void stream(float* p, Vector16 v) { _mm512_stream_ps(p, v); }
inline std::pair<Vector16, Vector16> interleaved(Vector16 even, Vector16 odd) {
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i high =
      _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  return {_mm512_permutex2var_ps(even, low, odd), _mm512_permutex2var_ps(even, high, odd)};
}
inline Vector16 load_argmax(const std::uint8_t* p, Vector16*) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
inline void store_argmax(std::uint8_t* p, Vector16 argmax) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(argmax)));
}
#endif

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

// v where the condition holds, otherwise 0. Before AVX-512 a condition is a vector of bit masks.
template <class V>
inline V where(const typename V::batch_bool_type& condition, const V& v) {
#if defined(__AVX512F__)
  if constexpr (V::size == 16) return xsimd::select(condition, v, V(0.0F));
#endif
  return v & xsimd::bitwise_cast(condition);
}

// Loads the first min(count, lanes) arg-max at p; the other lanes are 0.
template <class V>
inline V load_argmax_within(const std::uint8_t* p, std::int64_t count) {
  if (count >= static_cast<std::int64_t>(V::size)) return load_argmax(p, static_cast<V*>(nullptr));
  std::uint8_t all[V::size] = {};
  for (std::int64_t lane = 0; lane < count; ++lane) all[lane] = p[lane];
  return load_argmax(all, static_cast<V*>(nullptr));
}

// Stores the first min(writable, lanes) elements.
template <class V>
inline void store_within(float* p, const V& v, std::int64_t writable) {
  if (writable >= static_cast<std::int64_t>(V::size)) return v.store_unaligned(p);
  if (writable > 0) store_partial(p, v, writable);
}
template <class V>
inline void store_argmax_within(std::uint8_t* p, const V& argmax, std::int64_t writable) {
  if (writable >= static_cast<std::int64_t>(V::size)) return store_argmax(p, argmax);
  std::uint8_t all[V::size];
  store_argmax(all, argmax);
  for (std::int64_t lane = 0; lane < writable; ++lane) p[lane] = all[lane];
}

}  // namespace stepladder::max_pool::inline STEPLADDER_ISA
