// Which primitives, variants and problems a command works on: options that verify and bench share.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "harness/primitives.hpp"

namespace stepladder {

struct Selection {
  std::vector<std::string> primitives;  // empty: all five
  std::string variant;                  // glob; empty: the ladder as `select_variants` has it
  std::string suite, suite_file, problem, direction;  // the last two are globs

  void add_options(CLI::App& app);
  // With MPI started when all_reduce is among them. Throws UnknownName.
  std::vector<const PrimitiveType*> types() const;
  // Of the suite, filtered; `otherwise` is the suite when none was named.
  std::vector<std::unique_ptr<Case>> cases(const PrimitiveType& type, const std::string& otherwise) const;
  std::string suite_argument(const std::string& otherwise) const;  // for the repeat command
};

std::vector<int> default_threads();  // 1 and all this process may use

}  // namespace stepladder
