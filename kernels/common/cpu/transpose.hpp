// Out-of-place transposition in squares that fit in registers: 8 x 8 with AVX, 4 x 4 without. The
// squares are visited in blocks of 16 x 16, so that whole cache lines of both sides stay in L1.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/cpu/instructions.hpp"
#include "kernels/common/isa.hpp"

namespace stepladder::inline STEPLADDER_ISA {

namespace transpose_squares {

#if defined(__aarch64__)
inline void transpose_square(const float* from, std::int64_t from_stride, float* to,
                             std::int64_t to_stride) {
  const float32x4_t a = vld1q_f32(from), b = vld1q_f32(from + from_stride);
  const float32x4_t c = vld1q_f32(from + 2 * from_stride), d = vld1q_f32(from + 3 * from_stride);
  const float32x4_t ac_low = vzip1q_f32(a, c), ac_high = vzip2q_f32(a, c);
  const float32x4_t bd_low = vzip1q_f32(b, d), bd_high = vzip2q_f32(b, d);
  vst1q_f32(to, vzip1q_f32(ac_low, bd_low));
  vst1q_f32(to + to_stride, vzip2q_f32(ac_low, bd_low));
  vst1q_f32(to + 2 * to_stride, vzip1q_f32(ac_high, bd_high));
  vst1q_f32(to + 3 * to_stride, vzip2q_f32(ac_high, bd_high));
}
#else
inline void transpose_square(const float* from, std::int64_t from_stride, float* to,
                             std::int64_t to_stride) {
  __m128 a = _mm_loadu_ps(from), b = _mm_loadu_ps(from + from_stride);
  __m128 c = _mm_loadu_ps(from + 2 * from_stride), d = _mm_loadu_ps(from + 3 * from_stride);
  _MM_TRANSPOSE4_PS(a, b, c, d);
  _mm_storeu_ps(to, a);
  _mm_storeu_ps(to + to_stride, b);
  _mm_storeu_ps(to + 2 * to_stride, c);
  _mm_storeu_ps(to + 3 * to_stride, d);
}
#endif

// Squares of 4 x 4, half a shuffle per element; the edges one element at a time.
inline void transpose_4x4(const float* from, std::int64_t from_stride, float* to,
                          std::int64_t to_stride, std::int64_t rows, std::int64_t columns) {
  std::int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    const float* f = from + i * from_stride;
    float* t = to + i;
    std::int64_t j = 0;
    for (; j + 4 <= columns; j += 4, f += 4, t += 4 * to_stride)
      transpose_square(f, from_stride, t, to_stride);
    for (; j < columns; ++j, ++f, t += to_stride)
      for (std::int64_t l = 0; l < 4; ++l) t[l] = f[l * from_stride];
  }
  const float* f = from + i * from_stride;
  float* t = to + i;
  for (std::int64_t j = 0; j < columns; ++j, ++f, t += to_stride)
    for (std::int64_t l = 0; l < rows - i; ++l) t[l] = f[l * from_stride];
}

#if defined(__AVX__)
// One square of 8 x 8. Rows i and i + 4 are loaded into one register, so a quarter of a shuffle per
// element is enough.
inline void transpose_8x8(const float* from, std::int64_t from_stride, float* to,
                          std::int64_t to_stride) {
  const auto rows = [&](std::int64_t i, std::int64_t j) {  // [from[i, j … j+4), from[i+4, j … j+4)]
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from + i * from_stride + j)),
                                _mm_loadu_ps(from + (i + 4) * from_stride + j), 1);
  };
  for (std::int64_t j = 0; j < 8; j += 4) {
    const __m256 a = rows(0, j), b = rows(1, j), c = rows(2, j), d = rows(3, j);
    const __m256 ab_low = _mm256_unpacklo_ps(a, b), ab_high = _mm256_unpackhi_ps(a, b);
    const __m256 cd_low = _mm256_unpacklo_ps(c, d), cd_high = _mm256_unpackhi_ps(c, d);
    float* t = to + j * to_stride;
    _mm256_storeu_ps(t, _mm256_shuffle_ps(ab_low, cd_low, 0x44));
    _mm256_storeu_ps(t + to_stride, _mm256_shuffle_ps(ab_low, cd_low, 0xEE));
    _mm256_storeu_ps(t + 2 * to_stride, _mm256_shuffle_ps(ab_high, cd_high, 0x44));
    _mm256_storeu_ps(t + 3 * to_stride, _mm256_shuffle_ps(ab_high, cd_high, 0xEE));
  }
}
#endif

}  // namespace transpose_squares

// to[j · to_stride + i] = from[i · from_stride + j] for i < rows, j < columns.
inline void transpose(const float* from, std::int64_t from_stride, float* to,
                      std::int64_t to_stride, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t line = 16;  // floats of a cache line
  for (std::int64_t i = 0; i < rows; i += line)
    for (std::int64_t j = 0; j < columns; j += line) {
      const float* f = from + i * from_stride + j;
      float* t = to + j * to_stride + i;
      const std::int64_t height = std::min(line, rows - i), width = std::min(line, columns - j);
#if defined(__AVX__)
      const std::int64_t height8 = height / 8 * 8, width8 = width / 8 * 8;
      for (std::int64_t r = 0; r < height8; r += 8)
        for (std::int64_t c = 0; c < width8; c += 8)
          transpose_squares::transpose_8x8(f + r * from_stride + c, from_stride,
                                           t + c * to_stride + r, to_stride);
      transpose_squares::transpose_4x4(f + width8, from_stride, t + width8 * to_stride, to_stride,
                                       height8, width - width8);
      transpose_squares::transpose_4x4(f + height8 * from_stride, from_stride, t + height8,
                                       to_stride, height - height8, width);
#else
      transpose_squares::transpose_4x4(f, from_stride, t, to_stride, height, width);
#endif
    }
}

}  // namespace stepladder::inline STEPLADDER_ISA
