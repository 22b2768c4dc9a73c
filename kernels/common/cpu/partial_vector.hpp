// Masked loads and stores for the tail of a row: only the first `count` lanes access memory.
// These are intrinsics because xsimd 8.1 has no masked memory access.
#pragma once

#include <cstdint>

#include "kernels/common/cpu/instructions.hpp"
#include "kernels/common/cpu/simd.hpp"

namespace stepladder::inline STEPLADDER_ISA {

// [p[0], …, p[count - 1], 0, …]; 0 <= count <= lanes.
template <class V = Vector>
V load_partial(const float* p, std::int64_t count) {
  constexpr std::int64_t lanes = V::size;
#if defined(__AVX512F__)
  if constexpr (lanes == 16)
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), p);
#endif
#if defined(__AVX2__)
  if constexpr (lanes == 8) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_maskload_ps(p,
                              _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), lane));
  }
#endif
  if constexpr (lanes == 1) return V(count > 0 ? *p : 0.0F);
#if defined(__aarch64__)
  if constexpr (lanes == 4) {
    if (count == 4) return vld1q_f32(p);
    const float32x2_t zero = vdup_n_f32(0);
    const float32x2_t last = count & 1 ? vset_lane_f32(p[count - 1], zero, 0) : zero;
    return count & 2 ? vcombine_f32(vld1_f32(p), last) : vcombine_f32(last, zero);
  }
#else
  if constexpr (lanes == 4) {
    if (count == 4) return _mm_loadu_ps(p);
    const __m128 last = count & 1 ? _mm_load_ss(p + count - 1) : _mm_setzero_ps();
    return count & 2
               ? _mm_movelh_ps(
                     _mm_castsi128_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))), last)
               : last;
  }
#endif
}

// p[l] = vector[l] for l < count; 0 <= count <= lanes.
template <class V>
void store_partial(float* p, V vector, std::int64_t count) {
  constexpr std::int64_t lanes = V::size;
  if constexpr (lanes == 1)
    if (count > 0) vector.store_unaligned(p);
#if defined(__AVX512F__)
  if constexpr (lanes == 16)
    _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << count) - 1), vector);
#endif
#if defined(__AVX2__)
  if constexpr (lanes == 8) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_maskstore_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), lane),
                        vector);
  }
#endif
#if defined(__aarch64__)
  if constexpr (lanes == 4) {
    if (count == 4) return vst1q_f32(p, vector);
    if (count & 2) vst1_f32(p, vget_low_f32(vector));
    const float32x2_t rest = count & 2 ? vget_high_f32(vector) : vget_low_f32(vector);
    if (count & 1) vst1_lane_f32(p + (count & 2), rest, 0);
  }
#else
  if constexpr (lanes == 4) {
    __m128 rest = vector;
    if (count == 4) return _mm_storeu_ps(p, rest);
    if (count & 2) {
      _mm_storel_pi(reinterpret_cast<__m64*>(p), rest);
      rest = _mm_movehl_ps(rest, rest);
    }
    if (count & 1) _mm_store_ss(p + (count & 2), rest);
  }
#endif
}

}  // namespace stepladder::inline STEPLADDER_ISA
