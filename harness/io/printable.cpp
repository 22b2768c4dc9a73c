#include "harness/io/printable.hpp"

#include <fmt/format.h>

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

}  // namespace stepladder
