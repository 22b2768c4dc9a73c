// A transposing copy, four by four in registers.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace stepladder::convolution {

// to[j · to_pitch + i] = from[i · from_pitch + j] for i < rows, j < columns.
template <class Arch>
void transpose(const float* from, std::int64_t from_pitch, float* to, std::int64_t to_pitch,
               std::int64_t rows, std::int64_t columns) {
  std::int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    const float* f = from + i * from_pitch;
    float* t = to + i;
    std::int64_t j = 0;
    for (; j + 4 <= columns; j += 4, f += 4, t += 4 * to_pitch) {
      __m128 a = _mm_loadu_ps(f), b = _mm_loadu_ps(f + from_pitch);
      __m128 c = _mm_loadu_ps(f + 2 * from_pitch), d = _mm_loadu_ps(f + 3 * from_pitch);
      _MM_TRANSPOSE4_PS(a, b, c, d);
      _mm_storeu_ps(t, a);
      _mm_storeu_ps(t + to_pitch, b);
      _mm_storeu_ps(t + 2 * to_pitch, c);
      _mm_storeu_ps(t + 3 * to_pitch, d);
    }
    for (; j < columns; ++j, ++f, t += to_pitch)
      for (std::int64_t l = 0; l < 4; ++l) t[l] = f[l * from_pitch];
  }
  const float* f = from + i * from_pitch;
  float* t = to + i;
  for (std::int64_t j = 0; j < columns; ++j, ++f, t += to_pitch)
    for (std::int64_t l = 0; l < rows - i; ++l) t[l] = f[l * from_pitch];
}

}  // namespace stepladder::convolution
