// Text that goes back into a shell.
#pragma once

#include <string>

namespace stepladder {

// `argument` as it is when no shell reads anything into it, else in single quotes.
std::string shell_quoted(const std::string& argument);

}  // namespace stepladder
