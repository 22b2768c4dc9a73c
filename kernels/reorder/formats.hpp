// The conversion of one number, for kernels that go through them one by one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/common/narrow_floats.hpp"
#include "kernels/reorder/reorder.hpp"

namespace stepladder::reorder::inline STEPLADDER_ISA {

template <class To, class From>
To converted(From value) {
  if constexpr (std::is_same_v<To, float>)
    return static_cast<float>(value);
  else if constexpr (std::is_same_v<To, Bf16>)
    return {bf16_of(value)};
  else if constexpr (std::is_same_v<To, Fp16>)
    return {fp16_of(value)};
  else
    return static_cast<std::int8_t>(std::rint(std::clamp(value, -128.0F, 127.0F)));
}

// Calls function.template operator()<From, To>() with the types of the elements of x and of y, of
// a problem that changes the format.
template <class Function>
void for_types(const Problem& p, Function&& function) {
  const auto narrow = [&]<class Narrow>() {
    if (p.from_format == Format::fp32)
      function.template operator()<float, Narrow>();
    else
      function.template operator()<Narrow, float>();
  };
  const Format format = p.from_format == Format::fp32 ? p.to_format : p.from_format;
  if (format == Format::bf16) narrow.template operator()<Bf16>();
  if (format == Format::fp16) narrow.template operator()<Fp16>();
  if (format == Format::int8) narrow.template operator()<std::int8_t>();
}

}  // namespace stepladder::reorder::inline STEPLADDER_ISA
