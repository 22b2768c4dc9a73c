// The one reader of numbers that people write, in options, their specifications and files: decimal,
// so that 010 is ten, and nothing before or after the digits.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace stepladder {

// nullopt unless all of `text` is a number that the type holds; a double must be finite.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || parsed != end) return std::nullopt;
  if constexpr (std::floating_point<Number>)
    if (!std::isfinite(number)) return std::nullopt;
  return number;
}

}  // namespace stepladder
