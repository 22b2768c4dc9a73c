#include "harness/io/printable.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/io/json_text.hpp"

namespace stepladder {

std::string printable(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n')
      line += "\\n";
    else if (c == '\r')
      line += "\\r";
    else if (c == '\t')
      line += "\\t";
    else if (code < 32 || code == 127)
      line += fmt::format("\\x{:02x}", code);
    else
      line += c;
  }
  return line;
}

std::string as_utf8(std::string_view text) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 128; };
  if (std::all_of(text.begin(), text.end(), is_ascii)) return std::string(text);
  return parse_json(json_text(nlohmann::json(text)));
}

}  // namespace stepladder
