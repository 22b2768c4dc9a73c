#include "harness/io/json_text.hpp"

namespace stepladder {

using nlohmann::json, nlohmann::ordered_json;

std::string json_text(const json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}

std::string json_text(const ordered_json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, ordered_json::error_handler_t::replace);
}

json parse_json(std::string_view text) { return json::parse(text); }

json try_parse_json(std::string_view text) {
  bool too_deep = false;
  const auto follow = [&](int depth, json::parse_event_t, const json&) {
    if (depth > deepest_json) too_deep = true;
    return !too_deep;
  };
  json content = json::parse(text, follow, /*allow_exceptions=*/false);
  return too_deep ? json(json::value_t::discarded) : content;
}

}  // namespace stepladder
