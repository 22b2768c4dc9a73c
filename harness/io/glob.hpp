// Globs that select names: * ? and [] as in a shell, several globs separated by commas. A backslash
// escapes a character.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepladder {

std::vector<std::string> split_globs(std::string_view list);
bool glob_matches(const std::string& glob, const std::string& name);
// The glob that matches `name` alone.
std::string glob_of(std::string_view name);

}  // namespace stepladder
