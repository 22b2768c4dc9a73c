#include "kernels/all_reduce/mpi/compressed/narrow_floats.hpp"

#include <algorithm>
#include <bit>

#include "kernels/common/cpu/instructions.hpp"

namespace stepladder::all_reduce {
namespace {

constexpr std::uint32_t sign_bit = 0x80000000u;

std::uint32_t magnitude_bits(float value) {
  return std::bit_cast<std::uint32_t>(value) & ~sign_bit;
}

// The biased exponent of the largest magnitude, from which both scales follow. 141: infinity and
// NaN stay what they are.
std::uint32_t exponent_of_block(std::uint32_t largest) {
  const std::uint32_t exponent = largest >> 23;
  return exponent == 255 ? 141 : std::max(exponent, 15u);
}
float power_of_two(std::uint32_t biased) { return std::bit_cast<float>(biased << 23); }
float scale_to_code(std::uint32_t exponent) { return power_of_two(127 + 141 - exponent); }
float scale_to_values(std::uint32_t exponent) { return power_of_two(127 - 141 + exponent); }

STEPLADDER_CLONES std::uint32_t largest_magnitude(const float* values, std::int64_t count) {
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, magnitude_bits(values[i]));
  return largest;
}

STEPLADDER_CLONES std::uint32_t add_and_find_largest(float* sum, const float* values,
                                                     std::int64_t count) {
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    sum[i] += values[i];
    largest = std::max(largest, magnitude_bits(sum[i]));
  }
  return largest;
}

#if defined(__x86_64__)
__attribute__((target("avx,f16c"))) std::int64_t to_fp16_f16c(const float* values,
                                                              std::int64_t count, float scale,
                                                              std::uint16_t* code) {
  const __m256 factor = _mm256_set1_ps(scale);
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(code + i),
                     _mm256_cvtps_ph(_mm256_mul_ps(_mm256_loadu_ps(values + i), factor),
                                     _MM_FROUND_TO_NEAREST_INT));
  return i;
}

__attribute__((target("avx,f16c"))) std::int64_t from_fp16_f16c(const std::uint16_t* code,
                                                                std::int64_t count, float scale,
                                                                float* values) {
  const __m256 factor = _mm256_set1_ps(scale);
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(
        values + i,
        _mm256_mul_ps(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(code + i))),
                      factor));
  return i;
}
#else
std::int64_t to_fp16_f16c(const float*, std::int64_t, float, std::uint16_t*) { return 0; }
std::int64_t from_fp16_f16c(const std::uint16_t*, std::int64_t, float, float*) { return 0; }
#endif

void encode_block(const float* values, std::int64_t count, std::uint32_t largest,
                  std::uint16_t* code) {
  const std::uint32_t exponent = exponent_of_block(largest);
  code[0] = static_cast<std::uint16_t>(exponent);
  to_fp16(values, count, scale_to_code(exponent), code + 1, has_fp16_instructions());
}

void decode_block(const std::uint16_t* code, std::int64_t count, float* values) {
  from_fp16(code + 1, count, scale_to_values(code[0]), values, has_fp16_instructions());
}

}  // namespace

STEPLADDER_CLONES void Bf16::encode(const float* values, std::int64_t count, std::uint16_t* code) {
  for (std::int64_t i = 0; i < count; ++i) code[i] = bf16_of(values[i]);
}

STEPLADDER_CLONES void Bf16::decode(const std::uint16_t* code, std::int64_t count, float* values) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = float_of_bf16(code[i]);
}

STEPLADDER_CLONES void Bf16::add_and_encode(const std::uint16_t* received, const float* values,
                                            std::int64_t count, std::uint16_t* code) {
  for (std::int64_t i = 0; i < count; ++i)
    code[i] = bf16_of(float_of_bf16(received[i]) + values[i]);
}

bool has_fp16_instructions() {
  static const bool has = cpu_has(Isa::avx2);
  return has;
}

void to_fp16(const float* values, std::int64_t count, float scale, std::uint16_t* code,
             bool by_instruction) {
  std::int64_t i = by_instruction ? to_fp16_f16c(values, count, scale, code) : 0;
  for (; i < count; ++i) code[i] = fp16_of(values[i] * scale);
}

void from_fp16(const std::uint16_t* code, std::int64_t count, float scale, float* values,
               bool by_instruction) {
  std::int64_t i = by_instruction ? from_fp16_f16c(code, count, scale, values) : 0;
  for (; i < count; ++i) values[i] = float_of_fp16(code[i]) * scale;
}

void Fp16::encode(const float* values, std::int64_t count, std::uint16_t* code) {
  for (std::int64_t at = 0; at < count; at += block) {
    const std::int64_t length = std::min(block, count - at);
    encode_block(values + at, length, largest_magnitude(values + at, length), code);
    code += 1 + length;
  }
}

void Fp16::decode(const std::uint16_t* code, std::int64_t count, float* values) {
  for (std::int64_t at = 0; at < count; at += block) {
    const std::int64_t length = std::min(block, count - at);
    decode_block(code, length, values + at);
    code += 1 + length;
  }
}

// The sum of a block stays in the L1 cache.
void Fp16::add_and_encode(const std::uint16_t* received, const float* values, std::int64_t count,
                          std::uint16_t* code) {
  alignas(64) float sum[block];
  for (std::int64_t at = 0; at < count; at += block) {
    const std::int64_t length = std::min(block, count - at);
    decode_block(received, length, sum);
    encode_block(sum, length, add_and_find_largest(sum, values + at, length), code);
    received += 1 + length;
    code += 1 + length;
  }
}

}  // namespace stepladder::all_reduce
