#include "bench/selection.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include "harness/machine.hpp"
#include "harness/nearest.hpp"
#include "harness/ranks.hpp"
#include "harness/suites.hpp"

namespace stepladder {

void Selection::add_options(CLI::App& app) {
  app.add_option("primitives", primitives, "matmul, convolution, max_pool, sgd_update, all_reduce; all by default");
  app.add_option("--variant", variant, "Only variants whose name matches this glob, as simd_* or openblas");
  app.add_option("--suite", suite, "A suite of bench/suites, as layers, alexnet, squares, deepbench, sweep");
  app.add_option("--suite-file", suite_file, "A file of the same form as bench/suites/<primitive>.csv")
      ->excludes("--suite");
  app.add_option("--problem", problem, "Only problems whose name matches this glob");
  app.add_option("--direction", direction, "Only this direction, as forward or backward_data; a glob");
}

std::vector<const PrimitiveType*> Selection::types() const {
  std::vector<const PrimitiveType*> chosen;
  for (const PrimitiveType* type : stepladder::primitives())
    if (primitives.empty() && type->has_suites()) chosen.push_back(type);
  for (const std::string& name : primitives) chosen.push_back(&primitive(name));
  for (const PrimitiveType* type : chosen)
    if (type->needs_ranks()) mpi_session().start();
  return chosen;
}

std::vector<std::unique_ptr<Case>> Selection::cases(const PrimitiveType& type, const std::string& otherwise) const {
  const bool own = !suite_file.empty();
  std::vector<std::unique_ptr<Case>> all = load_suite(type, own ? std::filesystem::path(suite_file) : stepladder::suite_file(type),
                                                      own ? "" : suite.empty() ? otherwise : suite, mpi_session().ranks());
  std::vector<std::string> names;
  for (const auto& c : all) names.push_back(c->info().name);
  std::erase_if(all, [&](const std::unique_ptr<Case>& c) {
    return (!problem.empty() && fnmatch(problem.c_str(), c->info().name.c_str(), 0) != 0) ||
           (!direction.empty() && fnmatch(direction.c_str(), c->info().direction.c_str(), 0) != 0);
  });
  if (all.empty())
    throw UnknownName(fmt::format("problem of {}{}", type.name(), direction.empty() ? "" : " in that direction"),
                      problem.empty() ? direction : problem, names);
  return all;
}

std::string Selection::suite_argument(const std::string& otherwise) const {
  if (!suite_file.empty()) return "--suite-file " + suite_file;
  return "--suite " + (suite.empty() ? otherwise : suite);
}

std::vector<int> default_threads() {
  const int all = detect_machine().threads_available;
  return all > 1 ? std::vector<int>{1, all} : std::vector<int>{1};
}

}  // namespace stepladder
