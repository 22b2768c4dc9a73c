// Checks of the numbers that options take. CLI11's own PositiveNumber names the largest double, 309
// digits, in its message.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <string>
#include <system_error>

#include "harness/io/float_range.hpp"

namespace stepladder {

inline CLI::Validator number_check(const char* name, const char* expected,
                                   bool (*accepts)(double)) {
  const auto check = [=](const std::string& text) -> std::string {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [parsed, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc{} && parsed == end && std::isfinite(value) && accepts(value)) return {};
    return fmt::format("expected {}, not '{}'", expected, text);
  };
  return {check, name};
}

inline const CLI::Validator positive_number =
    number_check("POSITIVE", "a number above 0", [](double value) { return value > 0; });
inline const CLI::Validator positive_float_number =
    number_check("POSITIVE", positive_float.expected, positive_float.accepts);
inline const CLI::Validator non_negative_number =
    number_check("NONNEGATIVE", "a number of 0 or more", [](double value) { return value >= 0; });

}  // namespace stepladder
