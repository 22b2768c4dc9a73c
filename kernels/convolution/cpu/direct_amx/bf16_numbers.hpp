// Two numbers rounded to bf16 in an element of 32 bits.
#pragma once

#include "kernels/common/cpu/narrow/dot_products.hpp"
#include "kernels/common/cpu/narrow/interleaved.hpp"

namespace stepladder::convolution {

struct Bf16Numbers {
  static constexpr std::int64_t count = 2;
  STEPLADDER_DOT_INLINE __m512i operator()(const __m512 (&values)[count]) const {
    return _mm512_permutexvar_epi16(_mm512_load_si512(narrow::interleaved),
                                    (__m512i)_mm512_cvtne2ps_pbh(values[1], values[0]));
  }
};

}  // namespace stepladder::convolution
