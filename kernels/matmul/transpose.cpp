#include "kernels/matmul/transpose.hpp"

#include <xmmintrin.h>  // SSE, which every x86-64 machine has

#include <algorithm>

namespace stepladder::matmul {
namespace {

// One block; the elements of `source` and `target` as in transpose().
void transpose_4x4(const float* source, std::int64_t source_step, float* target,
                   std::int64_t target_step) {
  __m128 row0 = _mm_loadu_ps(source);
  __m128 row1 = _mm_loadu_ps(source + source_step);
  __m128 row2 = _mm_loadu_ps(source + 2 * source_step);
  __m128 row3 = _mm_loadu_ps(source + 3 * source_step);
  _MM_TRANSPOSE4_PS(row0, row1, row2, row3);
  _mm_storeu_ps(target, row0);
  _mm_storeu_ps(target + target_step, row1);
  _mm_storeu_ps(target + 2 * target_step, row2);
  _mm_storeu_ps(target + 3 * target_step, row3);
}

void transpose_2x4(const float* source, std::int64_t source_step, float* target,
                   std::int64_t target_step) {
  const __m128 row0 = _mm_loadu_ps(source);
  const __m128 row1 = _mm_loadu_ps(source + source_step);
  const __m128 columns01 = _mm_unpacklo_ps(row0, row1);
  const __m128 columns23 = _mm_unpackhi_ps(row0, row1);
  _mm_storel_pi(reinterpret_cast<__m64*>(target), columns01);
  _mm_storeh_pi(reinterpret_cast<__m64*>(target + target_step), columns01);
  _mm_storel_pi(reinterpret_cast<__m64*>(target + 2 * target_step), columns23);
  _mm_storeh_pi(reinterpret_cast<__m64*>(target + 3 * target_step), columns23);
}

}  // namespace

void transpose(std::int64_t rows, std::int64_t columns, const float* source,
               std::int64_t source_step, float* target, std::int64_t target_step) {
  // Squares of 16 x 16: their 16 lines of `source` and 16 of `target` are used whole while they are
  // in the first-level cache.
  constexpr std::int64_t line = 16;
  const std::int64_t rows4 = rows / 4 * 4, columns4 = columns / 4 * 4;
  for (std::int64_t i0 = 0; i0 < rows4; i0 += line)
    for (std::int64_t j0 = 0; j0 < columns4; j0 += line)
      for (std::int64_t i = i0; i < std::min(i0 + line, rows4); i += 4)
        for (std::int64_t j = j0; j < std::min(j0 + line, columns4); j += 4)
          transpose_4x4(source + i * source_step + j, source_step, target + j * target_step + i,
                        target_step);
  std::int64_t i = rows4;
  if (i + 2 <= rows) {  // panels of 6 rows end here
    for (std::int64_t j = 0; j < columns4; j += 4)
      transpose_2x4(source + i * source_step + j, source_step, target + j * target_step + i,
                    target_step);
    i += 2;
  }
  if (i < rows)
    for (std::int64_t j = 0; j < columns4; ++j)
      target[j * target_step + i] = source[i * source_step + j];
  for (std::int64_t j = columns4; j < columns; ++j)
    for (std::int64_t r = 0; r < rows; ++r)
      target[j * target_step + r] = source[r * source_step + j];
}

}  // namespace stepladder::matmul
