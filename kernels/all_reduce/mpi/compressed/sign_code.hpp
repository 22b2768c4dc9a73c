// One bit per element: C(v) = mean |v| · sign(v) in each block of 64 elements (Seide et al., 1-bit
// stochastic gradient descent and its application to data-parallel distributed training of speech
// DNNs, 2014; Karimireddy et al., Error feedback fixes SignSGD and other gradient compression
// schemes, 2019).
//
// A block of b elements has |v - C(v)|^2 = |v|^2 - (sum|v|)^2 / b <= (1 - 1/b) |v|^2: the
// contraction is 1/64, and 2/pi for normal values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stepladder::all_reduce {

inline constexpr std::int64_t sign_block = 64;
inline constexpr double sign_contraction = 1.0 / sign_block;

// Bytes of the code of `count` elements: 8 of signs and 4 of magnitude for each block.
constexpr std::int64_t sign_code_bytes(std::int64_t count) {
  return (count + sign_block - 1) / sign_block * 12;
}

// Encodes v = values + residual and leaves v - C(v) in residual. values, residual: [count];
// code: [sign_code_bytes(count)], aligned to 4 bytes.
void encode_signs(const float* values, float* residual, std::int64_t count, std::byte* code);

// values = C(v), or values += C(v).
void decode_signs(const std::byte* code, std::int64_t count, float* values);
void add_decoded_signs(const std::byte* code, std::int64_t count, float* values);

}  // namespace stepladder::all_reduce
