// Vectors of floats in 16 bits, rounded to nearest, ties to even.
#pragma once

#include <cstdint>

#include "kernels/common/narrow_floats.hpp"

namespace stepladder::all_reduce {

// bf16: 8 bits of exponent, 8 of precision: the range of fp32.
struct Bf16 {
  // Elements of the code of `count` floats.
  static std::int64_t code_length(std::int64_t count) { return count; }
  static void encode(const float* values, std::int64_t count, std::uint16_t* code);
  static void decode(const std::uint16_t* code, std::int64_t count, float* values);
  // code = encode(decode(received) + values)
  static void add_and_encode(const std::uint16_t* received, const float* values, std::int64_t count,
                             std::uint16_t* code);
};

// fp16: 5 bits of exponent, 11 of precision. Each block of 1024 floats is multiplied by a power of
// two that brings its largest magnitude between 2^14 and 2^15, and the code of the block begins
// with that exponent. So nothing overflows, and only magnitudes below 2^-29 of the largest in the
// block have less than 11 bits.
struct Fp16 {
  static constexpr std::int64_t block = 1024;
  static std::int64_t code_length(std::int64_t count) {
    return count + (count + block - 1) / block;
  }
  static void encode(const float* values, std::int64_t count, std::uint16_t* code);
  static void decode(const std::uint16_t* code, std::int64_t count, float* values);
  static void add_and_encode(const std::uint16_t* received, const float* values, std::int64_t count,
                             std::uint16_t* code);
};

// Convert arrays, with or without the instructions; code and values: [count].
void to_fp16(const float* values, std::int64_t count, float scale, std::uint16_t* code,
             bool by_instruction);
void from_fp16(const std::uint16_t* code, std::int64_t count, float scale, float* values,
               bool by_instruction);
bool has_fp16_instructions();

}  // namespace stepladder::all_reduce
