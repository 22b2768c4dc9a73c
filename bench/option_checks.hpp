// Options that take numbers. CLI11 itself reads 010 as eight and 2^64 as 2^64 - 1.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/io/float_range.hpp"
#include "harness/io/number.hpp"

namespace stepladder {

inline constexpr int most_threads = 1024;
inline constexpr std::uint64_t most_seed = std::numeric_limits<std::uint64_t>::max();
// Of steps, epochs and samples: products of two of them fit into 64 bits.
inline constexpr std::uint64_t most_counted = 1'000'000'000;

// A whole number as CLI11 reads it: without leading zeros.
inline CLI::Validator whole_number(std::uint64_t least, std::uint64_t greatest) {
  const auto check = [=](std::string& text) -> std::string {
    const std::optional<std::uint64_t> number = number_in<std::uint64_t>(text);
    if (!number || *number < least || *number > greatest)
      return fmt::format("expected a whole number from {} to {}, not '{}'", least, greatest, text);
    text = fmt::format("{}", *number);
    return {};
  };
  return {check, fmt::format("{} to {}", least, greatest)};
}

inline CLI::Validator number_between(double least, double greatest) {
  const auto check = [=](const std::string& text) -> std::string {
    const std::optional<double> number = number_in<double>(text);
    if (number && *number >= least && *number <= greatest) return {};
    return fmt::format("expected a number from {:g} to {:g}, not '{}'", least, greatest, text);
  };
  return {check, fmt::format("{:g} to {:g}", least, greatest)};
}

inline CLI::Validator positive_number() {
  constexpr double greatest = 1e9;
  const auto check = [=](const std::string& text) -> std::string {
    const std::optional<double> number = number_in<double>(text);
    if (number && *number > 0 && *number <= greatest) return {};
    return fmt::format("expected a number above 0, at most {:g}, not '{}'", greatest, text);
  };
  return {check, "POSITIVE"};
}

// An option with whole numbers between commas; `numbers` must live as long as the app.
inline CLI::Option* add_numbers(CLI::App& app, const std::string& name, std::vector<int>& numbers,
                                const std::string& meaning, int greatest) {
  const auto read = [=, &numbers](const std::string& text) {
    std::vector<int> all;
    for (std::size_t from = 0; from <= text.size();) {
      const std::size_t to = std::min(text.find(',', from), text.size());
      const std::optional<int> number =
          number_in<int>(std::string_view(text).substr(from, to - from));
      if (!number || *number < 1 || *number > greatest)
        throw CLI::ValidationError(
            name, fmt::format("expected whole numbers from 1 to {}, such as 1,2, not '{}'",
                              greatest, text));
      all.push_back(*number);
      from = to + 1;
    }
    numbers = std::move(all);
  };
  return app.add_option_function<std::string>(name, read, meaning)
      ->type_name(fmt::format("INT,...:1 to {}", greatest));
}

inline CLI::Option* add_threads(CLI::App& app, std::vector<int>& threads,
                                const std::string& meaning) {
  return add_numbers(app, "--threads", threads, meaning, most_threads);
}

// Of a value that is used in single precision, such as positive_float.
inline CLI::Validator number_in_range(const FloatRange& range) {
  const auto check = [=](const std::string& text) -> std::string {
    const std::optional<double> number = number_in<double>(text);
    if (number && range.accepts(*number)) return {};
    return fmt::format("expected {}, not '{}'", range.expected, text);
  };
  return {check, "NUMBER"};
}

}  // namespace stepladder
