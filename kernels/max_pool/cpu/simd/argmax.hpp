// Arg-max in vectors: one byte each in memory, a float in a lane.
//
//   load_argmax / store_argmax   converts a vector of floats from and to bytes
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/common/cpu/instructions.hpp"
#include "kernels/common/cpu/strided.hpp"

namespace stepladder::max_pool::inline STEPLADDER_ISA {

#if defined(__aarch64__)
inline Vector4 load_argmax(const std::uint8_t* p, Vector4*) {
  std::uint32_t bytes;
  std::memcpy(&bytes, p, sizeof bytes);
  const uint16x8_t words = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(bytes)));
  return vcvtq_f32_u32(vmovl_u16(vget_low_u16(words)));
}
inline void store_argmax(std::uint8_t* p, Vector4 argmax) {
  const uint16x4_t words = vqmovn_u32(vcvtq_u32_f32(argmax));
  const uint8x8_t all = vqmovn_u16(vcombine_u16(words, words));
  const std::uint32_t bytes = vget_lane_u32(vreinterpret_u32_u8(all), 0);
  std::memcpy(p, &bytes, sizeof bytes);
}
#else
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
#endif

#if defined(__AVX2__)
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
inline Vector16 load_argmax(const std::uint8_t* p, Vector16*) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
inline void store_argmax(std::uint8_t* p, Vector16 argmax) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(argmax)));
}
#endif

// v where the condition holds, otherwise 0. Before AVX-512 a condition is a vector of bit masks.
template <class V>
inline V where(const typename V::batch_bool_type& condition, const V& v) {
#if defined(__AVX512F__)
  if constexpr (V::size == 16) return xsimd::select(condition, v, V(0.0F));
#endif
  return v & xsimd::bitwise_cast(condition);
}

// Stores the first min(writable, lanes) arg-max.
template <class V>
inline void store_argmax_within(std::uint8_t* p, const V& argmax, std::int64_t writable) {
  if (writable >= static_cast<std::int64_t>(V::size)) return store_argmax(p, argmax);
  std::uint8_t all[V::size];
  store_argmax(all, argmax);
  for (std::int64_t lane = 0; lane < writable; ++lane) p[lane] = all[lane];
}

}  // namespace stepladder::max_pool::inline STEPLADDER_ISA
