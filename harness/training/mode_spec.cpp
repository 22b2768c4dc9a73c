#include "harness/training/mode_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "harness/io/float_range.hpp"
#include "harness/io/nearest.hpp"
#include "harness/io/number.hpp"
#include "harness/io/printable.hpp"

namespace stepladder {
namespace {

std::vector<ModeEntry>& registered() {
  static std::vector<ModeEntry> entries;
  return entries;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find(separator, from), text.size());
    parts.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

}  // namespace

ModeRegistration::ModeRegistration(ModeInfo info, ModeFactory make, ModeForecast forecast) {
  std::vector<ModeEntry>& entries = registered();
  const auto at =
      std::ranges::lower_bound(entries, std::string(info.name), {},
                               [](const ModeEntry& entry) { return std::string(entry.info.name); });
  entries.insert(at, {std::move(info), make, forecast});
}

const std::vector<ModeEntry>& modes() { return registered(); }

const ModeEntry& mode_named(const std::string& name) {
  std::vector<std::string> names;
  for (const ModeEntry& entry : modes()) {
    if (name == entry.info.name) return entry;
    names.emplace_back(entry.info.name);
  }
  throw UnknownName("mode", name, names);
}

ModeSpec::ModeSpec(const std::string& text) : text_(text) {
  const std::vector<std::string> parts = split(text, ',');
  name_ = parts.front();
  const std::size_t slash = name_.find('/');
  const std::string between = name_.substr(0, slash);
  if (slash != std::string::npos) {
    values_ = {{"between", between}, {"inside", name_.substr(slash + 1)}};
    mode_named(between);
    mode_named(values_.at("inside"));
    name_ = "hybrid";
  }
  const ModeInfo& info = mode_named(name_).info;
  std::vector<std::string> names;
  for (const ModeOption& option : info.options) {
    values_.emplace(option.name, option.value);
    names.emplace_back(option.name);
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    const std::string option = parts[i].substr(0, equals);
    if (equals == std::string::npos)
      throw std::runtime_error(
          printable(fmt::format("mode {}: \"{}\": expected option=value", text, parts[i])));
    if (!values_.contains(option))
      throw UnknownName(fmt::format("option of mode {}", name_), option, names);
    values_[option] = parts[i].substr(equals + 1);
  }
}

void ModeSpec::fail(const char* option, const std::string& expected) const {
  throw std::runtime_error(printable(
      fmt::format("mode {}: {}={}: expected {}", text_, option, value(option), expected)));
}

std::int64_t ModeSpec::integer(const char* option, std::int64_t least) const {
  const std::string& text = value(option);
  constexpr std::int64_t greatest = 1'000'000'000;
  const std::optional<std::int64_t> number = number_in<std::int64_t>(text);
  if (!number || *number < least || *number > greatest)
    fail(option, fmt::format("a whole number from {} to {}", least, greatest));
  return *number;
}

float ModeSpec::number(const char* option) const {
  const std::optional<double> number = number_in<double>(value(option));
  if (!number || !non_negative_float.accepts(*number)) fail(option, non_negative_float.expected);
  return static_cast<float>(*number);
}

bool ModeSpec::flag(const char* option) const {
  const std::string& text = value(option);
  if (text != "yes" && text != "no") fail(option, "yes or no");
  return text == "yes";
}

}  // namespace stepladder
