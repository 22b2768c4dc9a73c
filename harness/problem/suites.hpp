// The problems to measure: one CSV file of suites for each primitive, in bench/suites.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "harness/problem/primitive_type.hpp"

namespace stepladder {

// The cases of `suite` in `file`, or of all suites if it is empty. Throws std::runtime_error with
// file and line if the file is malformed, UnknownName if it has no such suite.
std::vector<std::unique_ptr<Case>> load_suite(const PrimitiveType& type,
                                              const std::filesystem::path& file,
                                              const std::string& suite, int ranks);

// bench/suites/<primitive>.csv of the project.
std::filesystem::path suite_file(const PrimitiveType& type);

}  // namespace stepladder
