// What an element of a source, of filters and of dy is to the register tiles of this folder: a
// float, or two numbers of bf16 in its 32 bits, whose products an instruction adds to one lane.
#pragma once

#include <algorithm>
#include <cstdint>
#include <xsimd/xsimd.hpp>

#include "kernels/common/cpu/narrow/interleaved.hpp"
#include "kernels/common/cpu/simd.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

struct Floats {
  static constexpr std::int64_t numbers = 1;
  static Vector add_products(Vector sum, Vector a, Vector b) { return xsimd::fma(a, b, sum); }
};

#if defined(__AVX512F__)
// For CPUs with AVX512_BF16 only. Builds for AVX-512 have no intrinsics of it: hence assembly.
struct Bf16Pairs {
  static constexpr std::int64_t numbers = 2;
  static Vector add_products(Vector sum, Vector a, Vector b) {
    __m512 result = sum;
    asm("vdpbf16ps %2, %1, %0" : "+v"(result) : "v"(__m512(a)), "v"(__m512(b)));
    return result;
  }

  // to[i]: first[i] in the lower half and second[i] in the upper one, rounded to nearest, ties to
  // even. second is null: 0.
  static void make(const float* first, const float* second, std::int64_t count, float* to) {
    const __m512i pairs = _mm512_load_si512(narrow::interleaved);
    for (std::int64_t i = 0; i < count; i += 16) {
      const auto mask = static_cast<__mmask16>((1U << std::min<std::int64_t>(16, count - i)) - 1);
      const __m512 low = _mm512_maskz_loadu_ps(mask, first + i);
      const __m512 high =
          second == nullptr ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(mask, second + i);
      __m512i rounded;
      asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(rounded) : "v"(low), "v"(high));
      _mm512_mask_storeu_epi32(to + i, mask, _mm512_permutexvar_epi16(pairs, rounded));
    }
  }
};
#endif

}  // namespace stepladder::convolution::inline STEPLADDER_ISA
