// Reading JSON that people write: every error says the file, the line, the place in the document
// (a JSON pointer, RFC 6901), what was expected and what was found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace stepladder::network {

class JsonValue;

// A parsed file. Throws std::runtime_error if it cannot be read, on a syntax error (with line and
// column), on a key that an object holds twice and on values nested more than 64 deep.
class JsonFile {
 public:
  explicit JsonFile(const std::filesystem::path& path);

  JsonValue root() const;

  // Throws "<file>:<line>: <pointer>: <what>".
  [[noreturn]] void fail(const nlohmann::json::json_pointer& at, const std::string& what) const;

 private:
  friend class JsonValue;
  std::filesystem::path path_;
  nlohmann::json document_;
  std::map<std::string, std::size_t> lines_;  // of the value at each JSON pointer, from 1
};

class JsonObject;

// A value in a JsonFile, which must outlive it. Each accessor throws std::runtime_error if the
// value is of another type or out of range.
class JsonValue {
 public:
  JsonValue(const JsonFile& file, nlohmann::json::json_pointer at)
      : file_(&file), at_(std::move(at)) {}

  std::int64_t whole_number(std::int64_t low, std::int64_t high) const;
  double positive() const;
  double not_negative() const;
  double fraction() const;  // 0 <= value < 1
  bool boolean() const;
  std::string text() const;
  // Letters, digits, '_', '-' and '.', one or more: safe in file names and CSV.
  std::string identifier() const;
  std::vector<JsonValue> elements() const;  // of an array
  JsonObject object() const;

  // Throws "… expected <expected>, found <the value>".
  [[noreturn]] void fail(const std::string& expected) const;
  [[noreturn]] void fail_with(const std::string& what) const { file_->fail(at_, what); }

 private:
  friend class JsonObject;
  const nlohmann::json& json() const { return file_->document_.at(at_); }
  double number(const char* expected, bool (*accepts)(double)) const;

  const JsonFile* file_;
  nlohmann::json::json_pointer at_;
};

// An object whose keys are asked for one by one; finish() then rejects any other key.
class JsonObject {
 public:
  explicit JsonObject(JsonValue value) : value_(std::move(value)) {}

  bool has(const std::string& key);
  bool has_either(const std::string& a, const std::string& b);
  JsonValue get(const std::string& key);  // throws std::runtime_error if the key is missing
  void finish() const;

  std::vector<std::string> keys() const;  // all of them, in alphabetical order
  const JsonValue& value() const { return value_; }

 private:
  JsonValue value_;
  std::set<std::string> known_;
};

}  // namespace stepladder::network
