// Numbers that are read as double and used as float are checked after the conversion: 0.99999999
// becomes 1, and 1e39 infinity.
#pragma once

#include <cmath>

namespace stepladder {

struct FloatRange {
  const char* expected;     // for "expected …, found …"
  bool (*accepts)(double);  // false for a number that float makes one outside the range
};

inline constexpr FloatRange positive_float{
    "a number above 0 in single precision (1.4e-45 to 3.4e+38)", [](double number) {
      const auto value = static_cast<float>(number);
      return value > 0 && std::isfinite(value);
    }};
inline constexpr FloatRange non_negative_float{"a number from 0 to 3.4e+38", [](double number) {
                                                 const auto value = static_cast<float>(number);
                                                 return number >= 0 && std::isfinite(value);
                                               }};
inline constexpr FloatRange float_below_1{
    "a number from 0 to below 1 in single precision (0.99999994)",
    [](double number) { return number >= 0 && static_cast<float>(number) < 1; }};

}  // namespace stepladder
