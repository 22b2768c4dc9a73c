// Instructions that multiply narrow neighbours and add the products into 32-bit lanes: one policy
// for each kind of operands. A group is what one lane takes of a row: 4 bytes.
//
//   DotBf16    vdpbf16ps   2 bf16 of each row, into fp32                       AVX512_BF16
//   DotInt8    vpdpbusd    4 uint8 of A and int8 of B, into int32              AVX512_VNNI
//   DotBits    vpopcntd    32 bits: those that differ, into int32              AVX512_VPOPCNTDQ
//   DotFloat   vfmadd      1 float, to which fp16 is widened when it is loaded AVX512F
//
// The functions are compiled for these instruction sets by attribute, in files that are built for
// the baseline: a plan must not call them unless the CPU has the set
// (kernels/common/cpu/extensions.hpp).
#pragma once

// GCC 12 warns of its own AVX-512 headers, which read registers that they leave undefined on
// purpose. clang does not know the second of these warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/common/cpu/narrow/interleaved.hpp"

#define STEPLADDER_DOT_TARGET \
  __attribute__((             \
      target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx512vnni,avx512vpopcntdq")))
// Into a function of the same target, whatever the compiler thinks of its size.
#define STEPLADDER_DOT_INLINE STEPLADDER_DOT_TARGET __attribute__((always_inline)) inline

namespace stepladder::narrow {

inline constexpr std::int64_t group_bytes = 4, lanes = 16, vector_bytes = group_bytes * lanes;

// As many lanes as `count` elements fill, up to 16.
inline __mmask16 first_lanes(std::int64_t count) {
  return static_cast<__mmask16>((1U << std::clamp(count, std::int64_t{0}, lanes)) - 1);
}

// 0, step, 2 step, …: indices of a gather or scatter.
STEPLADDER_DOT_INLINE __m512i multiples(std::int64_t step) {
  return _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                            _mm512_set1_epi32(static_cast<int>(step)));
}

// Numbers i of two vectors, rounded to bf16, side by side in lane i.
STEPLADDER_DOT_INLINE __m512i bf16_pairs(__m512 first, __m512 second) {
  return _mm512_permutexvar_epi16(_mm512_load_si512(interleaved),
                                  (__m512i)_mm512_cvtne2ps_pbh(second, first));
}

struct DotBf16 {
  using Sums = __m512;
  STEPLADDER_DOT_INLINE static Sums zero() { return _mm512_setzero_ps(); }
  STEPLADDER_DOT_INLINE static Sums add(Sums sums, __m512i a, __m512i b) {
    return _mm512_dpbf16_ps(sums, (__m512bh)a, (__m512bh)b);
  }
};

struct DotFloat {
  using Sums = __m512;
  STEPLADDER_DOT_INLINE static Sums zero() { return _mm512_setzero_ps(); }
  STEPLADDER_DOT_INLINE static Sums add(Sums sums, __m512i a, __m512i b) {
    return _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sums);
  }
};

struct DotInt8 {
  using Sums = __m512i;
  STEPLADDER_DOT_INLINE static Sums zero() { return _mm512_setzero_si512(); }
  STEPLADDER_DOT_INLINE static Sums add(Sums sums, __m512i a, __m512i b) {
    return _mm512_dpbusd_epi32(sums, a, b);
  }
};

// vpdpbusd on quantized operands (quantize.hpp): sums begin at an offset of their column, and
// results are products of the steps of their row and column.
struct DotQuantized : DotInt8 {};

struct DotBits {
  using Sums = __m512i;
  STEPLADDER_DOT_INLINE static Sums zero() { return _mm512_setzero_si512(); }
  STEPLADDER_DOT_INLINE static Sums add(Sums sums, __m512i a, __m512i b) {
    return _mm512_add_epi32(sums, _mm512_popcnt_epi32(_mm512_xor_si512(a, b)));
  }
};

// Elements of C from the lanes: sums of numbers as they are, and k - 2 x of x bits that differ.
STEPLADDER_DOT_INLINE __m512 results_of(__m512 sums, std::int64_t, DotBf16) { return sums; }
STEPLADDER_DOT_INLINE __m512 results_of(__m512 sums, std::int64_t, DotFloat) { return sums; }
STEPLADDER_DOT_INLINE __m512 results_of(__m512i sums, std::int64_t, DotInt8) {
  return _mm512_cvtepi32_ps(sums);
}
STEPLADDER_DOT_INLINE __m512 results_of(__m512i sums, std::int64_t k, DotBits) {
  const __m512i all = _mm512_set1_epi32(static_cast<int>(k));
  return _mm512_cvtepi32_ps(_mm512_sub_epi32(all, _mm512_add_epi32(sums, sums)));
}

}  // namespace stepladder::narrow
