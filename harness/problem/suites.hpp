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

// The problems of suite `shape` that `text` describes: the values of the type's suite columns in
// order, joined by x, then words COLUMN=VALUE. "64x512x784 transpose_b=1" is a matmul. Columns not
// given take the type's defaults. Throws std::runtime_error that names what is wrong.
std::vector<std::unique_ptr<Case>> shape_problems(const PrimitiveType& type,
                                                  const std::string& text, int ranks);

// The sizes that such a text needs, for messages: "mxnxk, for example 64x64x64".
std::string shape_form(const PrimitiveType& type);

// bench/suites/<primitive>.csv of the project.
std::filesystem::path suite_file(const PrimitiveType& type);

}  // namespace stepladder
