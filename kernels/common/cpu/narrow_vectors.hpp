// Vectors of numbers in 16 and 8 bits: widened to fp32 as they are loaded, rounded to nearest, ties
// to even, as they are stored.
//
//   bf16   the upper half of fp32: integer operations, which every CPU has
//   fp16   an instruction from AVX2 on, and of NEON
//   int8   an instruction that saturates; values are limited first, since one that does not fit 32
//          bits becomes the least of them
//
// xsimd has no loads and stores of narrow numbers: those are intrinsics.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/common/cpu/instructions.hpp"
#include "kernels/common/cpu/simd.hpp"
#include "kernels/common/narrow_floats.hpp"

namespace stepladder::inline STEPLADDER_ISA {

using Words = xsimd::batch<std::uint32_t, Arch>;

// load_halves: zero-extended; store_halves: of words below 2^16; store_bytes: of values in the
// range of int8.
#if defined(__AVX512F__)
inline Words load_halves(const void* from) {
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(from)));
}
inline void store_halves(const Words& words, void* to) {
  _mm256_storeu_si256(static_cast<__m256i*>(to), _mm512_cvtepi32_epi16(words));
}
inline Vector widen(const Fp16* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
inline void narrow(const Vector& values, Fp16* to) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm512_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
}
inline Vector widen(const std::int8_t* from) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}
inline void store_bytes(const Vector& values, std::int8_t* to) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                   _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(values)));
}
#elif defined(__AVX2__)
inline Words load_halves(const void* from) {
  return _mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(from)));
}
inline void store_halves(const Words& words, void* to) {
  const __m256i all = words;
  _mm_storeu_si128(static_cast<__m128i*>(to),
                   _mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1)));
}
inline Vector widen(const Fp16* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
inline void narrow(const Vector& values, Fp16* to) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                   _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
}
inline Vector widen(const std::int8_t* from) {
  return _mm256_cvtepi32_ps(
      _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
}
inline void store_bytes(const Vector& values, std::int8_t* to) {
  const __m256i wide = _mm256_cvtps_epi32(values);
  const __m128i halves =
      _mm_packs_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packs_epi16(halves, halves));
}
#elif defined(__aarch64__)
inline Words load_halves(const void* from) {
  return vmovl_u16(vld1_u16(static_cast<const std::uint16_t*>(from)));
}
inline void store_halves(const Words& words, void* to) {
  vst1_u16(static_cast<std::uint16_t*>(to), vmovn_u32(words));
}
inline Vector widen(const Fp16* from) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(reinterpret_cast<const std::uint16_t*>(from))));
}
inline void narrow(const Vector& values, Fp16* to) {
  vst1_u16(reinterpret_cast<std::uint16_t*>(to), vreinterpret_u16_f16(vcvt_f16_f32(values)));
}
inline Vector widen(const std::int8_t* from) {
  std::int32_t four = 0;
  std::memcpy(&four, from, sizeof(four));
  const int16x8_t halves = vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four)));
  return vcvtq_f32_s32(vmovl_s16(vget_low_s16(halves)));
}
inline void store_bytes(const Vector& values, std::int8_t* to) {
  const int16x4_t halves = vqmovn_s32(vcvtnq_s32_f32(values));
  const int8x8_t bytes = vqmovn_s16(vcombine_s16(halves, halves));
  const std::int32_t four = vget_lane_s32(vreinterpret_s32_s8(bytes), 0);
  std::memcpy(to, &four, sizeof(four));
}
#else
inline Words load_halves(const void* from) {
  return _mm_cvtepu16_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(from)));
}
inline void store_halves(const Words& words, void* to) {
  _mm_storel_epi64(static_cast<__m128i*>(to), _mm_packus_epi32(words, words));
}
inline Vector widen(const Fp16* from) {
  return _mm_setr_ps(float(from[0]), float(from[1]), float(from[2]), float(from[3]));
}
inline void narrow(const Vector& values, Fp16* to) {
  float value[4];
  values.store_unaligned(value);
  for (int i = 0; i < 4; ++i) to[i] = {fp16_of(value[i])};
}
inline Vector widen(const std::int8_t* from) {
  int four = 0;
  std::memcpy(&four, from, sizeof(four));
  return _mm_cvtepi32_ps(_mm_cvtepi8_epi32(_mm_cvtsi32_si128(four)));
}
inline void store_bytes(const Vector& values, std::int8_t* to) {
  const __m128i wide = _mm_cvtps_epi32(values), halves = _mm_packs_epi32(wide, wide);
  const int four = _mm_cvtsi128_si32(_mm_packs_epi16(halves, halves));
  std::memcpy(to, &four, sizeof(four));
}
#endif

inline Vector widen(const Bf16* from) { return std::bit_cast<Vector>(load_halves(from) << 16); }

inline void narrow(const Vector& values, Bf16* to) {
  const auto bits = std::bit_cast<Words>(values);
  const Words rounded = bits + Words(0x7fffU) + ((bits >> 16) & Words(1U));
  const Words quiet = bits | Words(0x400000U);  // rounding a NaN could carry into the sign
  const Vector chosen = xsimd::select(xsimd::isnan(values), std::bit_cast<Vector>(quiet),
                                      std::bit_cast<Vector>(rounded));
  store_halves(std::bit_cast<Words>(chosen) >> 16, to);
}

inline void narrow(const Vector& values, std::int8_t* to) {
  store_bytes(xsimd::min(xsimd::max(values, Vector(-128.0F)), Vector(127.0F)), to);
}

}  // namespace stepladder::inline STEPLADDER_ISA
