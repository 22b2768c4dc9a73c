// JSON to text and back. The library's templates for both are large: they are compiled here alone,
// and for JsonFile.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace stepladder {

// On one line, or on lines that `indent` spaces a level indent. Bytes that are no UTF-8, as a path
// may have, become U+FFFD.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

// Throws nlohmann::json::exception unless `text` is JSON, of numbers that double has.
nlohmann::json parse_json(std::string_view text);
// Of a file that others may have changed: discarded (see nlohmann::json::is_discarded()) unless
// `text` is JSON whose values nest at most 64 deep. Whoever copies or writes a value calls itself
// once for each level.
nlohmann::json try_parse_json(std::string_view text);
inline constexpr int deepest_json = 64;

}  // namespace stepladder
