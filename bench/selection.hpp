// Which primitives, variants and problems a command works on: options that verify and bench share.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "harness/io/nearest.hpp"
#include "harness/problem/primitives.hpp"

namespace stepladder {

// What there is to do for one primitive.
struct Work {
  const PrimitiveType* type;
  std::vector<Variant> variants;
  std::vector<std::unique_ptr<Case>> problems;
};

struct Selection {
  std::vector<std::string> primitives;  // empty: all five
  std::string variant;                  // globs; empty: the ladder as `select_variants` has it
  std::string place;                    // cpu or cuda; empty: both
  std::string suite, suite_file, problem, direction;  // the last two are globs

  void add_options(CLI::App& app);
  // Reads the problems of the suite, or of the suite `otherwise` when none was named; none when that is
  // empty. Starts MPI when all_reduce is among the primitives. Throws UnknownName when a primitive that
  // was named lacks the variant, place, suite, problem or direction; where no primitive was named,
  // those that lack it are left out, unless all do. Throws std::runtime_error for a malformed file.
  std::vector<Work> work(const std::string& otherwise) const;
  std::string suite_argument(const std::string& otherwise) const;  // for the repeat command

 private:
  std::vector<const PrimitiveType*> types() const;
  std::vector<Variant> variants(const PrimitiveType& type) const;
  std::vector<std::unique_ptr<Case>> cases(const PrimitiveType& type,
                                           const std::string& otherwise) const;
};

// --place cpu|cuda
void add_place_option(CLI::App& app, std::string& place);
std::vector<Variant> at_place(const std::vector<Variant>& variants, const std::string& place);
UnknownName lacks_place(const PrimitiveType& type, const std::string& place);

std::vector<int> default_threads();  // 1 and all this process may use
std::vector<int> without_repeats(const std::vector<int>& threads);  // in the order given

}  // namespace stepladder
