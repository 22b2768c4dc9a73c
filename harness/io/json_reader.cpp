#include "harness/io/json_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "harness/io/file.hpp"
#include "harness/io/json_text.hpp"
#include "harness/io/printable.hpp"

namespace stepladder {
namespace {

using nlohmann::json;

constexpr std::size_t longest_pointer = 1000;  // bounds the memory: each value has its pointer

std::string describe(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  constexpr std::size_t longest = 60;
  const std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  return text.size() <= longest ? text : text.substr(0, longest) + "…";
}

}  // namespace

// nlohmann::json 3.11 reports positions for syntax errors only, but the errors of JsonValue name
// the line of a value. The parser's callback therefore records it.
JsonFile::JsonFile(const std::filesystem::path& path) : path_(path.string()) {
  using Event = json::parse_event_t;
  const std::vector<std::uint8_t> bytes = read_bytes(path);
  std::istringstream stream(std::string(bytes.begin(), bytes.end()));
  // The line of the last of `read` characters. A line break belongs to the line that it ends: the
  // parser may have read it to find the end of a number.
  const auto line_of = [&](std::ptrdiff_t read) {
    return 1 +
           std::count(bytes.begin(), bytes.begin() + std::max<std::ptrdiff_t>(read - 1, 0), '\n');
  };
  const auto read = [&] { return stream.rdbuf()->pubseekoff(0, std::ios::cur, std::ios::in); };
  // The same for what was read so far.
  std::ptrdiff_t counted = 0, line = 1;
  const auto line_here = [&] {
    const std::ptrdiff_t end = static_cast<std::streamoff>(read()) - 1;
    if (end > counted) {
      line += std::count(bytes.begin() + counted, bytes.begin() + end, '\n');
      counted = end;
    }
    return line;
  };
  json::json_pointer at;
  std::vector<std::int64_t> next;  // for each open array the next index, for an object -1
  const auto follow = [&](int, Event event, const json& parsed) {
    if (event == Event::object_end || event == Event::array_end) {
      next.pop_back();
      if (!next.empty()) at.pop_back();
      return true;
    }
    if (event == Event::key)
      at.push_back(parsed.get<std::string>());
    else if (!next.empty() && next.back() >= 0)
      at.push_back(std::to_string(next.back()++));
    const std::string pointer = at.to_string();
    if (pointer.size() > longest_pointer)
      throw std::runtime_error(
          fmt::format("{}:{}: expected JSON pointers of at most {} characters, found one of {}",
                      path_, line_here(), longest_pointer, pointer.size()));
    const bool is_new = lines_.insert_or_assign(pointer, line_here()).second;
    if (event == Event::key && !is_new)
      fail(at, fmt::format("expected each key once, found '{}' again", at.back()));
    if (event == Event::value && !next.empty()) at.pop_back();
    if (event != Event::object_start && event != Event::array_start) return true;
    if (next.size() == deepest_json)
      fail(at,
           fmt::format("expected values nested at most {} deep, found deeper ones", deepest_json));
    next.push_back(event == Event::array_start ? 0 : -1);
    return true;
  };
  try {
    document_ = json::parse(stream, follow);
  } catch (const json::parse_error& error) {
    const std::string what = error.what();  // "... line 3, column 5: syntax error while ..."
    const std::size_t from = what.find("syntax error");  // newer versions: not of an empty file
    const auto before =
        bytes.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte - 1, bytes.size()));
    const auto begin = std::find(std::reverse_iterator(before), bytes.rend(), '\n').base();
    throw std::runtime_error(printable(fmt::format(
        "{}:{}:{}: expected JSON, found a {}", path_, line_of(before - bytes.begin() + 1),
        before - begin + 1,
        from == std::string::npos ? "syntax error: unexpected end of input" : what.substr(from))));
  } catch (const json::out_of_range& error) {  // a number beyond the range of double
    throw std::runtime_error(printable(
        fmt::format("{}:{}: expected JSON, found {}", path_, line_of(read()), error.what())));
  }
}

JsonValue JsonFile::root() const { return {*this, json::json_pointer()}; }

void JsonFile::fail(const json::json_pointer& at, const std::string& what) const {
  const std::string pointer = at.to_string();
  throw std::runtime_error(printable(fmt::format("{}:{}: {}: {}", path_, lines_.at(pointer),
                                                 pointer.empty() ? "/" : pointer, what)));
}

void JsonValue::fail(const std::string& expected) const {
  fail_with(fmt::format("expected {}, found {}", expected, describe(*json_)));
}

std::int64_t JsonValue::whole_number(std::int64_t low, std::int64_t high) const {
  // Numbers from 2^63 on are kept as unsigned.
  const bool fits = json_->is_number_unsigned()
                        ? std::cmp_less_equal(json_->get<std::uint64_t>(), high)
                        : json_->is_number_integer() && json_->get<std::int64_t>() <= high;
  if (!fits || json_->get<std::int64_t>() < low)
    fail(fmt::format("a whole number from {} to {}", low, high));
  return json_->get<std::int64_t>();
}

std::vector<JsonValue> JsonValue::elements() const {
  expect(json_->is_array(), "an array");
  std::vector<JsonValue> values;
  for (std::size_t i = 0; i < json_->size(); ++i) values.push_back(at(i));
  return values;
}

bool JsonObject::has(const std::string& key) {
  known_.insert(key);
  return json_->contains(key);
}

JsonValue JsonObject::get(const std::string& key) {
  if (!has(key)) fail_with(fmt::format("expected a key '{}', found none", key));
  return at(key);
}

void JsonObject::finish() const {
  for (const std::string& key : keys())
    if (!known_.contains(key))
      at(key).fail_with(
          fmt::format("expected one of the keys {}, found '{}'", fmt::join(known_, ", "), key));
}

std::vector<std::string> JsonObject::keys() const {
  std::vector<std::string> keys;
  for (const auto& item : json_->items()) keys.push_back(item.key());
  return keys;
}

}  // namespace stepladder
