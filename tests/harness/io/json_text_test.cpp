#include "harness/io/json_text.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace stepladder {
namespace {

// An array within as many others.
std::string nested(int others) {
  const auto count = static_cast<std::size_t>(others + 1);
  return std::string(count, '[') + std::string(count, ']');
}

TEST(JsonText, IsOneLineOrIndented) {
  const nlohmann::json value = {{"b", 1}, {"a", {true, nullptr}}};
  EXPECT_EQ(json_text(value), R"({"a":[true,null],"b":1})");
  EXPECT_EQ(json_text(nlohmann::json{{"a", 1}}, 1), "{\n \"a\": 1\n}");
}

TEST(JsonText, KeepsTheOrderOfAnOrderedValue) {
  EXPECT_EQ(json_text(nlohmann::ordered_json{{"b", 1}, {"a", 2}}), R"({"b":1,"a":2})");
}

TEST(JsonText, ReplacesBytesThatAreNoUtf8) {
  EXPECT_EQ(json_text(nlohmann::json("a\xff")), "\"a\xef\xbf\xbd\"");
}

TEST(JsonText, WritesNullForWhatIsNoNumber) {
  EXPECT_EQ(json_text(nlohmann::json(std::numeric_limits<double>::quiet_NaN())), "null");
}

TEST(ParseJson, ThrowsUnlessItIsJson) {
  EXPECT_EQ(parse_json("[1]"), nlohmann::json({1}));
  for (const char* text : {"", "{", "[1] 2", "1e999"})
    EXPECT_THROW(parse_json(text), nlohmann::json::exception) << text;
}

TEST(TryParseJson, DiscardsWhatIsNoJsonOrNestsTooDeep) {
  EXPECT_EQ(try_parse_json("[1]"), nlohmann::json({1}));
  for (const char* text : {"", "{", "[1] 2"}) EXPECT_TRUE(try_parse_json(text).is_discarded());
  EXPECT_FALSE(try_parse_json(nested(deepest_json)).is_discarded());
  EXPECT_TRUE(try_parse_json(nested(deepest_json + 1)).is_discarded());
}

}  // namespace
}  // namespace stepladder
