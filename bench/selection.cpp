#include "bench/selection.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "harness/measure/machine.hpp"
#include "harness/io/nearest.hpp"
#include "harness/io/ranks.hpp"
#include "harness/io/shell.hpp"
#include "harness/problem/suites.hpp"

namespace stepladder {

void Selection::add_options(CLI::App& app) {
  app.add_option("primitives", primitives,
                 "matmul, convolution, max_pool, sgd_update, all_reduce; all by default");
  app.add_option("--variant", variant,
                 "Only variants whose name matches this glob, or one of several: simd_*,openblas");
  add_place_option(app, place);
  app.add_option("--suite", suite,
                 "A suite of bench/suites, as layers, alexnet, squares, deepbench, sweep");
  app.add_option("--suite-file", suite_file,
                 "A file of the same form as bench/suites/<primitive>.csv")
      ->excludes("--suite");
  app.add_option("--problem", problem, "Only problems whose name matches this glob");
  app.add_option("--direction", direction,
                 "Only this direction, as forward or backward_data; a glob");
}

std::vector<const PrimitiveType*> Selection::types() const {
  if (!suite_file.empty() && primitives.size() != 1)
    throw CLI::ValidationError(
        "--suite-file", "holds problems of one primitive; name that primitive, and it alone");
  std::vector<const PrimitiveType*> chosen;
  for (const PrimitiveType* type : stepladder::primitives())
    if (primitives.empty() && type->has_suites()) chosen.push_back(type);
  for (const std::string& name : primitives) {
    const PrimitiveType* type = &primitive(name);
    if (std::find(chosen.begin(), chosen.end(), type) == chosen.end()) chosen.push_back(type);
  }
  for (const PrimitiveType* type : chosen)
    if (type->needs_ranks()) mpi_session().start();
  return chosen;
}

std::vector<Variant> Selection::variants(const PrimitiveType& type) const {
  std::vector<Variant> here = at_place(select_variants(type, variant), place);
  if (!here.empty()) return here;
  const std::vector<Variant> all = at_place(type.variants(), place);
  if (all.empty()) throw lacks_place(type, place);
  std::vector<std::string> names;
  for (const Variant& other : all) names.push_back(other.name);
  throw UnknownName(fmt::format("{} variant of {}", place, type.name()), variant, names);
}

std::vector<std::unique_ptr<Case>> Selection::cases(const PrimitiveType& type,
                                                    const std::string& otherwise) const {
  const bool own = !suite_file.empty();
  const std::string wanted = own ? "" : suite.empty() ? otherwise : suite;
  if (!type.has_suites() || (!own && wanted.empty())) return {};
  std::vector<std::unique_ptr<Case>> all =
      load_suite(type, own ? std::filesystem::path(suite_file) : stepladder::suite_file(type),
                 wanted, mpi_session().ranks());
  // Keeps the problems of which `name_of` matches the glob.
  const auto keep = [&](const std::string& glob, const std::string& what, const auto& name_of) {
    if (glob.empty()) return;
    std::vector<std::string> names;
    for (const auto& c : all) names.push_back(name_of(c->info()));
    std::erase_if(all, [&](const auto& c) {
      return fnmatch(glob.c_str(), name_of(c->info()).c_str(), 0) != 0;
    });
    if (all.empty()) throw UnknownName(fmt::format("{} of {}", what, type.name()), glob, names);
  };
  keep(problem, "problem", [](const ProblemInfo& info) { return info.name; });
  keep(direction, "direction", [](const ProblemInfo& info) { return info.direction; });
  return all;
}

std::vector<Work> Selection::work(const std::string& otherwise) const {
  std::vector<Work> all;
  std::vector<UnknownName> lacking;
  for (const PrimitiveType* type : types()) {
    try {
      all.push_back({type, variants(*type), cases(*type, otherwise)});
    } catch (const UnknownName& error) {
      if (!primitives.empty()) throw;
      lacking.push_back(error);
    }
  }
  if (!all.empty()) return all;
  std::vector<std::string> nearest;
  for (const UnknownName& error : lacking)
    nearest.insert(nearest.end(), error.suggestions().begin(), error.suggestions().end());
  const std::string kind = lacking.front().kind();  // "variant of matmul"
  throw UnknownName(kind.substr(0, kind.find(" of ")), lacking.front().name(), nearest);
}

std::string Selection::suite_argument(const std::string& otherwise) const {
  if (!suite_file.empty()) return "--suite-file " + shell_quoted(suite_file);
  return "--suite " + shell_quoted(suite.empty() ? otherwise : suite);
}

void add_place_option(CLI::App& app, std::string& place) {
  app.add_option("--place", place, "Only variants that run there: cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}));
}

std::vector<Variant> at_place(const std::vector<Variant>& variants, const std::string& place) {
  std::vector<Variant> there;
  for (const Variant& variant : variants)
    if (place.empty() || (variant.info->place == Place::cuda) == (place == "cuda"))
      there.push_back(variant);
  return there;
}

UnknownName lacks_place(const PrimitiveType& type, const std::string& place) {
  std::vector<std::string> places;
  for (const char* other : {"cpu", "cuda"})
    if (!at_place(type.variants(), other).empty()) places.emplace_back(other);
  return {fmt::format("place of {}", type.name()), place, places};
}

std::vector<int> default_threads() {
  const int all = detect_machine().threads_available;
  return all > 1 ? std::vector<int>{1, all} : std::vector<int>{1};
}

std::vector<int> without_repeats(const std::vector<int>& threads) {
  std::vector<int> once;
  for (const int count : threads)
    if (std::find(once.begin(), once.end(), count) == once.end()) once.push_back(count);
  return once;
}

}  // namespace stepladder
