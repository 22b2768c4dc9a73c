#include "harness/io/glob.hpp"

#include <fnmatch.h>

namespace stepladder {

std::vector<std::string> split_globs(std::string_view list) {
  std::vector<std::string> globs(1);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == ',') {
      globs.emplace_back();
      continue;
    }
    globs.back() += list[i];
    if (list[i] == '\\' && i + 1 < list.size()) globs.back() += list[++i];
  }
  return globs;
}

bool glob_matches(const std::string& glob, const std::string& name) {
  return fnmatch(glob.c_str(), name.c_str(), 0) == 0;
}

std::string glob_of(std::string_view name) {
  std::string glob;
  for (const char c : name) {
    if (std::string_view("*?[]\\,").find(c) != std::string_view::npos) glob += '\\';
    glob += c;
  }
  return glob;
}

}  // namespace stepladder
