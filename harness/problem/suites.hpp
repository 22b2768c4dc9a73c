// The problems to measure: suites are CSV files, one for each primitive, in bench/suites.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "harness/problem/primitives.hpp"

namespace stepladder {

// The cases of `suite` in `file` (every suite when empty). Throws std::runtime_error naming file and
// line for malformed content, UnknownName for a suite that the file does not have.
std::vector<std::unique_ptr<Case>> load_suite(const PrimitiveType& type,
                                              const std::filesystem::path& file,
                                              const std::string& suite, int ranks);

// bench/suites/<primitive>.csv of the project.
std::filesystem::path suite_file(const PrimitiveType& type);
std::filesystem::path source_directory();  // where the project was built from

}  // namespace stepladder
