// Numbers in 16 bits, and where the formats differ for a kernel that goes through the elements.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/common/isa.hpp"
#include "kernels/low_precision/low_precision.hpp"

namespace stepladder::low_precision::inline STEPLADDER_ISA {

struct Bf16 {
  std::uint16_t bits;
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

struct Fp16 {
  std::uint16_t bits;
  explicit operator float() const { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
};

// Rounded to nearest, ties to even; finite values only.
inline std::uint16_t bf16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline std::uint16_t fp16_of(float value) {
  return std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
}

// Calls function.template operator()<A, B, Sum>() with the types of the elements of A and of B and
// of their sums, unless they are bits.
template <class Function>
void for_types(Format format, Function&& function) {
  if (format == Format::bf16) function.template operator()<Bf16, Bf16, float>();
  if (format == Format::fp16) function.template operator()<Fp16, Fp16, float>();
  if (format == Format::int8)
    function.template operator()<std::uint8_t, std::int8_t, std::int32_t>();
}

}  // namespace stepladder::low_precision::inline STEPLADDER_ISA
