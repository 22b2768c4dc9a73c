// A number and its noun in a sentence.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace stepladder {

// "1 thread", "2 threads"
template <class Count>
std::string counted(const Count& count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace stepladder
