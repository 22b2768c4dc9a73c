// Numbers in 16 bits: bf16 (8 bits of exponent, 8 of precision) and fp16 (5 and 11). Rounded to
// nearest, ties to even; infinities and NaN stay what they are.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/common/isa.hpp"

namespace stepladder::inline STEPLADDER_ISA {

inline std::uint16_t bf16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const std::uint32_t quiet_nan = bits >> 16 | 0x40;  // rounding could carry into the sign
  return static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet_nan : rounded);
}

inline float float_of_bf16(std::uint16_t code) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16);
}

inline std::uint16_t fp16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  // From 2^-14: another exponent, and 13 bits rounded off.
  const std::uint32_t normal = (magnitude - (112U << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  // Below: 0.5 has the last bit that subnormals have, so the addition rounds to it.
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
  std::uint32_t half = magnitude < 113U << 23 ? subnormal : normal;
  half = magnitude >= 0x477ff000U ? 0x7c00U : half;  // from 65520: infinity
  half = magnitude > 0x7f800000U ? 0x7e00U | (magnitude >> 13 & 0x3ff) : half;
  return static_cast<std::uint16_t>(half | (bits & 0x80000000U) >> 16);
}

inline float float_of_fp16(std::uint16_t half) {
  const std::uint32_t shifted = static_cast<std::uint32_t>(half & 0x7fff) << 13;
  const std::uint32_t normal = shifted + (112U << 23);
  const float subnormal = std::bit_cast<float>(shifted + (113U << 23)) - 0x1p-14F;
  std::uint32_t bits = normal;
  if (shifted < 1U << 23) bits = std::bit_cast<std::uint32_t>(subnormal);
  if (shifted >= 31U << 23) bits = normal + (112U << 23);
  if (shifted > 31U << 23) bits |= 0x400000U;  // a quiet NaN
  return std::bit_cast<float>(bits | static_cast<std::uint32_t>(half & 0x8000) << 16);
}

// Elements of arrays.
struct Bf16 {
  std::uint16_t bits;
  explicit operator float() const { return float_of_bf16(bits); }
};

struct Fp16 {
  std::uint16_t bits;
  explicit operator float() const { return float_of_fp16(bits); }
};

}  // namespace stepladder::inline STEPLADDER_ISA
