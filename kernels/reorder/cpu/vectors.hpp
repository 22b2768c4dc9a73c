// Conversions of `lanes` numbers at once. bf16 is rounded in the integer units, which every CPU
// has. fp16 has instructions from AVX2 on, int8 one that saturates.
//
// In intrinsics: xsimd has no conversions to 8 and 16 bits.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/common/cpu/parts.hpp"
#include "kernels/reorder/formats.hpp"

namespace stepladder::reorder::inline STEPLADDER_ISA {

#if defined(__AVX512F__)

inline constexpr std::int64_t lanes = 16;

inline void convert_vector(const float* x, Bf16* y) {
  const __m512i bits = _mm512_castps_si512(_mm512_loadu_ps(x));
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i half = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
  const __m512i rounded = _mm512_add_epi32(bits, half);
  const __mmask16 nan =
      _mm512_cmp_ps_mask(_mm512_castsi512_ps(bits), _mm512_castsi512_ps(bits), _CMP_UNORD_Q);
  const __m512i quiet = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(y),
                      _mm512_cvtepi32_epi16(_mm512_srli_epi32(quiet, 16)));
}
inline void convert_vector(const float* x, Fp16* y) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(y),
                      _mm512_cvtps_ph(_mm512_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT));
}
inline void convert_vector(const float* x, std::int8_t* y) {
  const __m512 limited =
      _mm512_min_ps(_mm512_max_ps(_mm512_loadu_ps(x), _mm512_set1_ps(-128)), _mm512_set1_ps(127));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(y),
                   _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(limited)));
}
inline void convert_vector(const Bf16* x, float* y) {
  const __m512i wide =
      _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
  _mm512_storeu_ps(y, _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16)));
}
inline void convert_vector(const Fp16* x, float* y) {
  _mm512_storeu_ps(y, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x))));
}
inline void convert_vector(const std::int8_t* x, float* y) {
  _mm512_storeu_ps(y, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(
                          _mm_loadu_si128(reinterpret_cast<const __m128i*>(x)))));
}

#elif defined(__AVX2__)

inline constexpr std::int64_t lanes = 8;

inline void convert_vector(const float* x, Bf16* y) {
  const __m256 value = _mm256_loadu_ps(x);
  const __m256i bits = _mm256_castps_si256(value);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
  const __m256i rounded = _mm256_add_epi32(bits, half);
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256 nan = _mm256_cmp_ps(value, value, _CMP_UNORD_Q);
  const __m256i code =
      _mm256_srli_epi32(_mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(rounded),
                                                             _mm256_castsi256_ps(quiet), nan)),
                        16);
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(y),
      _mm_packus_epi32(_mm256_castsi256_si128(code), _mm256_extracti128_si256(code, 1)));
}
inline void convert_vector(const float* x, Fp16* y) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(y),
                   _mm256_cvtps_ph(_mm256_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT));
}
inline void convert_vector(const float* x, std::int8_t* y) {
  const __m256 limited =
      _mm256_min_ps(_mm256_max_ps(_mm256_loadu_ps(x), _mm256_set1_ps(-128)), _mm256_set1_ps(127));
  const __m256i wide = _mm256_cvtps_epi32(limited);
  const __m128i words =
      _mm_packs_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(y), _mm_packs_epi16(words, words));
}
inline void convert_vector(const Bf16* x, float* y) {
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
  _mm256_storeu_ps(y, _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16)));
}
inline void convert_vector(const Fp16* x, float* y) {
  _mm256_storeu_ps(y, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x))));
}
inline void convert_vector(const std::int8_t* x, float* y) {
  _mm256_storeu_ps(y, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(
                          _mm_loadl_epi64(reinterpret_cast<const __m128i*>(x)))));
}

#else

inline constexpr std::int64_t lanes = 4;

inline void convert_vector(const float* x, Bf16* y) {
  const __m128 value = _mm_loadu_ps(x);
  const __m128i bits = _mm_castps_si128(value);
  const __m128i odd = _mm_and_si128(_mm_srli_epi32(bits, 16), _mm_set1_epi32(1));
  const __m128i half = _mm_add_epi32(odd, _mm_set1_epi32(0x7fff));
  const __m128i rounded = _mm_add_epi32(bits, half);
  const __m128i quiet = _mm_or_si128(bits, _mm_set1_epi32(0x400000));
  const __m128i code = _mm_srli_epi32(
      _mm_castps_si128(_mm_blendv_ps(_mm_castsi128_ps(rounded), _mm_castsi128_ps(quiet),
                                     _mm_cmpunord_ps(value, value))),
      16);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(y), _mm_packus_epi32(code, code));
}
inline void convert_vector(const float* x, std::int8_t* y) {
  const __m128 limited =
      _mm_min_ps(_mm_max_ps(_mm_loadu_ps(x), _mm_set1_ps(-128)), _mm_set1_ps(127));
  const __m128i wide = _mm_cvtps_epi32(limited);
  const __m128i words = _mm_packs_epi32(wide, wide);
  const int four = _mm_cvtsi128_si32(_mm_packs_epi16(words, words));
  std::memcpy(y, &four, sizeof(four));
}
inline void convert_vector(const Bf16* x, float* y) {
  const __m128i wide = _mm_cvtepu16_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(x)));
  _mm_storeu_ps(y, _mm_castsi128_ps(_mm_slli_epi32(wide, 16)));
}
inline void convert_vector(const std::int8_t* x, float* y) {
  int four = 0;
  std::memcpy(&four, x, sizeof(four));
  _mm_storeu_ps(y, _mm_cvtepi32_ps(_mm_cvtepi8_epi32(_mm_cvtsi32_si128(four))));
}
template <class From, class To>  // fp16
void convert_vector(const From* x, To* y) {
  for (std::int64_t i = 0; i < lanes; ++i) y[i] = converted<To>(x[i]);
}

#endif

template <class From, class To>
void convert(const From* x, To* y, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) convert_vector(x + i, y + i);
  for (; i < count; ++i) y[i] = converted<To>(x[i]);
}

class Converted final : public Plan {
 public:
  Converted(const Problem& p, const Resources& resources) : p_(p) {
    if (!p.changes_format()) throw Unsupported("converts formats, not layouts");
    constexpr std::int64_t min_elements_per_thread = 32768;  // some microseconds
    parts_ = parts_that_pay(p.x_count(), p.x_count(), min_elements_per_thread, resources.threads);
  }

  void run(const Operands& o) override {
    for_types(p_, [&]<class From, class To>() {
      constexpr std::int64_t lines = 64;  // whole cache lines of both sides
      for_each_part(
          p_.x_count(), parts_,
          [&](const Range& range, int) {
            convert(static_cast<const From*>(o.x) + range.begin,
                    static_cast<To*>(o.y) + range.begin, range.end - range.begin);
          },
          lines);
    });
  }

 private:
  Problem p_;
  int parts_ = 1;
};

}  // namespace stepladder::reorder::inline STEPLADDER_ISA
