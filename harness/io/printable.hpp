// Text of a user or a file as it may stand in a message of one line.
#pragma once

#include <string>
#include <string_view>

namespace stepladder {

// `text` with control characters as "\n", "\t" or "\x1b".
std::string printable(std::string_view text);

// `text` with U+FFFD for bytes that are no UTF-8, as the name of a file may have.
std::string as_utf8(std::string_view text);

}  // namespace stepladder
