#include "harness/io/shell.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "harness/io/printable.hpp"

namespace stepladder {

std::string shell_quoted(const std::string& argument) {
  const bool plain = std::all_of(argument.begin(), argument.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_-+=.,:/@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain && !argument.empty()) return argument;
  if (as_utf8(argument) != argument) {  // the text of a command is UTF-8
    std::string escaped;
    for (const char c : argument)
      escaped += c >= ' ' && c <= '~' && c != '\'' && c != '\\'
                     ? std::string(1, c)
                     : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    return fmt::format("$'{}'", escaped);
  }
  std::string quoted = "'";
  for (const char c : argument) {
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  }
  return quoted + "'";
}

}  // namespace stepladder
