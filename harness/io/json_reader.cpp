#include "harness/io/json_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <stdexcept>
#include <string_view>

#include "harness/io/file.hpp"

namespace stepladder::network {
namespace {

using nlohmann::json;
using Pointer = json::json_pointer;

// Walks over text and counts the lines before the character read last, so that a token's line is
// known when the parser reports it, even if the parser had to read the newline that ends it.
class LineCounter {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  LineCounter(const char* at, std::size_t* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  LineCounter& operator++() {
    if (after_newline_) ++*line_;
    after_newline_ = *at_++ == '\n';
    return *this;
  }
  bool operator==(const LineCounter& other) const { return at_ == other.at_; }
  bool operator!=(const LineCounter& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  std::size_t* line_;
  bool after_newline_ = false;
};

// Follows the parser: keeps the line of every value, finds double keys and syntax errors.
class Recorder : public nlohmann::json_sax<json> {
 public:
  Recorder(std::string path, std::string_view text) : path_(std::move(path)), text_(text) {}

  std::size_t* line_counter() { return &line_; }
  std::map<std::string, std::size_t> take_lines() { return std::move(lines_); }

  bool null() override { return scalar(); }
  bool boolean(bool) override { return scalar(); }
  bool number_integer(std::int64_t) override { return scalar(); }
  bool number_unsigned(std::uint64_t) override { return scalar(); }
  bool number_float(double, const std::string&) override { return scalar(); }
  bool string(std::string&) override { return scalar(); }
  bool binary(json::binary_t&) override { return scalar(); }
  bool start_object(std::size_t) override { return open(false); }
  bool start_array(std::size_t) override { return open(true); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    if (!nest_.back().keys.insert(name).second) {
      throw std::runtime_error(fmt::format("{}:{}: {}: expected each key once, found '{}' again",
                                           path_, line_, (at_ / name).to_string(), name));
    }
    at_.push_back(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    const std::string_view before = text_.substr(0, position == 0 ? 0 : position - 1);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
    throw std::runtime_error(fmt::format("{}:{}:{}: expected JSON, found a {}", path_, line,
                                         before.size() - line_start + 1, detail_of(error.what())));
  }

 private:
  struct Nest {
    bool array;
    std::size_t next = 0;  // index of an array's next element
    std::set<std::string> keys;
  };

  // The library's message from "syntax error" on, without its own numbering and position.
  static std::string detail_of(const std::string& message) {
    const std::size_t start = message.find("syntax error");
    return start == std::string::npos ? "problem: " + message : message.substr(start);
  }

  void enter() {
    if (!nest_.empty() && nest_.back().array) at_.push_back(std::to_string(nest_.back().next++));
    lines_[at_.to_string()] = line_;
  }
  void leave() {
    if (!nest_.empty()) at_.pop_back();
  }
  bool scalar() {
    enter();
    leave();
    return true;
  }
  bool open(bool array) {
    constexpr std::size_t deepest = 64;
    enter();
    if (nest_.size() == deepest) {
      throw std::runtime_error(
          fmt::format("{}:{}: expected values nested at most {} deep, found "
                      "deeper ones",
                      path_, line_, deepest));
    }
    nest_.push_back({array, 0, {}});
    return true;
  }
  bool close() {
    nest_.pop_back();
    leave();
    return true;
  }

  std::string path_;
  std::string_view text_;
  std::size_t line_ = 1;
  Pointer at_;
  std::vector<Nest> nest_;
  std::map<std::string, std::size_t> lines_;
};

std::string describe(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  constexpr std::size_t longest = 60;
  const std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  return text.size() <= longest ? text : text.substr(0, longest) + "…";
}

}  // namespace

JsonFile::JsonFile(const std::filesystem::path& path) : path_(path) {
  const std::vector<std::uint8_t> bytes = data::read_bytes(path);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Recorder recorder(path.string(), text);
  std::size_t* line = recorder.line_counter();
  json::sax_parse(LineCounter(text.data(), line), LineCounter(text.data() + text.size(), line),
                  &recorder);
  lines_ = recorder.take_lines();
  document_ = json::parse(text);
}

JsonValue JsonFile::root() const { return {*this, Pointer()}; }

void JsonFile::fail(const Pointer& at, const std::string& what) const {
  const std::string place = at.to_string();
  throw std::runtime_error(fmt::format("{}:{}: {}: {}", path_.string(), lines_.at(place),
                                       place.empty() ? "/" : place, what));
}

void JsonValue::fail(const std::string& expected) const {
  fail_with(fmt::format("expected {}, found {}", expected, describe(json())));
}

std::int64_t JsonValue::whole_number(std::int64_t low, std::int64_t high) const {
  const nlohmann::json& value = json();
  // A number beyond 2^63 is kept as unsigned, and get() would wrap it around.
  const bool fits =
      value.is_number_integer() && !(value.is_number_unsigned() &&
                                     value.get<std::uint64_t>() > static_cast<std::uint64_t>(high));
  if (!fits || value.get<std::int64_t>() < low || value.get<std::int64_t>() > high) {
    fail(fmt::format("a whole number from {} to {}", low, high));
  }
  return value.get<std::int64_t>();
}

double JsonValue::number(const char* expected, bool (*accepts)(double)) const {
  if (!json().is_number() || !accepts(json().get<double>())) fail(expected);
  return json().get<double>();
}

double JsonValue::positive() const {
  return number("a number above 0", [](double value) { return value > 0; });
}

double JsonValue::not_negative() const {
  return number("a number of 0 or more", [](double value) { return value >= 0; });
}

double JsonValue::fraction() const {
  return number("a number from 0 to below 1", [](double value) { return value >= 0 && value < 1; });
}

bool JsonValue::boolean() const {
  if (!json().is_boolean()) fail("true or false");
  return json().get<bool>();
}

std::string JsonValue::text() const {
  if (!json().is_string()) fail("a string");
  return json().get<std::string>();
}

std::string JsonValue::identifier() const {
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  };
  std::string name = text();
  if (name.empty() || !std::all_of(name.begin(), name.end(), allowed)) {
    fail("a name of letters, digits, '_', '-' and '.'");
  }
  return name;
}

std::vector<JsonValue> JsonValue::elements() const {
  if (!json().is_array()) fail("an array");
  std::vector<JsonValue> values;
  for (std::size_t i = 0; i < json().size(); ++i) values.emplace_back(*file_, at_ / i);
  return values;
}

JsonObject JsonValue::object() const {
  if (!json().is_object()) fail("an object");
  return JsonObject(*this);
}

bool JsonObject::has(const std::string& key) {
  known_.insert(key);
  return value_.json().contains(key);
}

bool JsonObject::has_either(const std::string& a, const std::string& b) {
  const bool has_a = has(a);
  const bool has_b = has(b);
  return has_a || has_b;
}

JsonValue JsonObject::get(const std::string& key) {
  if (!has(key)) value_.fail_with(fmt::format("expected a key '{}', found none", key));
  return {*value_.file_, value_.at_ / key};
}

void JsonObject::finish() const {
  for (const std::string& key : keys()) {
    if (known_.contains(key)) continue;
    value_.file_->fail(value_.at_ / key, fmt::format("expected one of the keys {}, found '{}'",
                                                     fmt::join(known_, ", "), key));
  }
}

std::vector<std::string> JsonObject::keys() const {
  std::vector<std::string> keys;
  for (const auto& item : value_.json().items()) keys.push_back(item.key());
  return keys;
}

}  // namespace stepladder::network
