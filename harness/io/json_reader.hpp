// Reads JSON files and reports errors with file, line, JSON pointer (RFC 6901), the expected and
// the actual value. All errors are std::runtime_error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace stepladder {

class JsonValue;

// Throws if the file cannot be read or is no JSON, on a key that an object holds twice, on values
// nested more than 64 deep and on JSON pointers of more than 1,000 characters.
class JsonFile {
 public:
  explicit JsonFile(const std::filesystem::path& path);
  JsonValue root() const;

 private:
  friend class JsonValue;
  [[noreturn]] void fail(const nlohmann::json::json_pointer& at, const std::string& what) const;

  std::string path_;
  nlohmann::json document_;
  std::map<std::string, std::ptrdiff_t> lines_;  // of the value at each JSON pointer, from 1
};

// A value in a JsonFile, which must outlive it. Accessors throw if its type or range is not theirs.
class JsonValue {
 public:
  JsonValue(const JsonFile& file, nlohmann::json::json_pointer at)
      : file_(&file), json_(&file.document_.at(at)), at_(std::move(at)) {}

  std::int64_t whole_number(std::int64_t low, std::int64_t high) const;
  double number(const char* expected, bool (*accepts)(double)) const {
    return expect(json_->is_number() && accepts(json_->get<double>()), expected).get<double>();
  }
  bool boolean() const { return expect(json_->is_boolean(), "true or false").get<bool>(); }
  std::string text() const { return expect(json_->is_string(), "a string").get<std::string>(); }
  std::vector<JsonValue> elements() const;  // of an array

  // Throws "... expected <expected>, found <the value>".
  [[noreturn]] void fail(const std::string& expected) const;
  [[noreturn]] void fail_with(const std::string& what) const { file_->fail(at_, what); }

 protected:
  const nlohmann::json& expect(bool holds, const char* expected) const {
    if (!holds) fail(expected);
    return *json_;
  }
  JsonValue at(const auto& key) const { return {*file_, at_ / key}; }

  const JsonFile* file_;
  const nlohmann::json* json_;
  nlohmann::json::json_pointer at_;
};

class JsonObject : public JsonValue {
 public:
  explicit JsonObject(const JsonValue& value) : JsonValue(value) {
    expect(json_->is_object(), "an object");
  }

  bool has(const std::string& key);
  JsonValue get(const std::string& key);  // throws if the key is missing
  void finish() const;  // throws on a key that neither has() nor get() was called with
  std::vector<std::string> keys() const;  // all, in alphabetical order

 private:
  std::set<std::string> known_;
};

}  // namespace stepladder
