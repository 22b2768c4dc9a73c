#include "harness/io/shell.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace stepladder {

std::string shell_quoted(const std::string& argument) {
  const bool plain = std::all_of(argument.begin(), argument.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_-+=.,:/@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain && !argument.empty()) return argument;
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
