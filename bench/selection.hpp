// Which primitives, variants and problems a command works on: options that verify and bench share.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "harness/problem/primitive_type.hpp"

namespace stepladder {

// The work for one primitive.
struct Work {
  const PrimitiveType* type;
  std::vector<Variant> variants;
  std::vector<std::unique_ptr<Case>> problems;
};

struct Selection {
  std::vector<std::string> primitives;  // empty: all that have suites
  std::string variant;                  // globs; empty: as select_variants() chooses
  std::string place;                    // cpu, cuda or opencl; empty: all
  std::string suite, suite_file;        // suite: names with commas
  std::vector<std::string> shapes;      // instead of a suite
  std::string problem, direction;       // globs
  std::string plugins;                  // " --plugin FILE" and so on, as they were given

  void add_options(CLI::App& app);
  // Collective. Reads the problems of the suites, or of `default_suite` when none was named; no
  // problems when both are empty. Starts MPI when all_reduce is among the primitives. Primitives
  // without the place, the suite or a match of the globs are left out, with a line on stderr if
  // they were named. Throws UnknownName when a glob matches in no primitive or all primitives are
  // left out, and std::runtime_error for a malformed file.
  std::vector<Work> work(const std::string& default_suite) const;
  // --suite-file or --shape with its value, for the repeat command; empty if neither was given
  std::string problems_argument() const;

 private:
  std::vector<const PrimitiveType*> types() const;
  // What work() returns; `lines`: what is left out.
  std::vector<Work> load(const std::string& default_suite, std::vector<std::string>& lines) const;
};

// --place cpu|cuda|opencl
void add_place_option(CLI::App& app, std::string& place);
std::vector<Variant> at_place(const std::vector<Variant>& variants, const std::string& place);
struct Ladder {
  const PrimitiveType* type;
  std::vector<Variant> variants;
};
// The variants of each primitive at the place, without the primitives that have none. Throws
// UnknownName when no primitive has one.
std::vector<Ladder> ladders_at(const std::vector<const PrimitiveType*>& types,
                               const std::string& place);

// Its name and whether it is available, to be compared between ranks.
std::string line_of(const PrimitiveType& type, const Variant& variant);

std::vector<int> default_threads();  // 1 and all that this process may use
// Those numbers of threads that really run; says which are left out. Throws if none is left.
std::vector<int> threads_that_run(const std::vector<int>& threads);
template <class T>
std::vector<T> without_repeats(const std::vector<T>& all) {  // in the order given
  std::vector<T> once;
  for (const T& one : all)
    if (std::find(once.begin(), once.end(), one) == once.end()) once.push_back(one);
  return once;
}

}  // namespace stepladder
