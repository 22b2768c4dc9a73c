// Quoting for a shell.
#pragma once

#include <string>

namespace stepladder {

// `argument`, unchanged if it has no special characters, otherwise in single quotes.
std::string shell_quoted(const std::string& argument);

}  // namespace stepladder
