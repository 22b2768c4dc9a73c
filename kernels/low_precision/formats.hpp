// The elements of the formats, for kernels that go through them one by one.
#pragma once

#include <cstdint>

#include "kernels/common/narrow_floats.hpp"
#include "kernels/low_precision/low_precision.hpp"

namespace stepladder::low_precision::inline STEPLADDER_ISA {

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
