#include "bench/selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "harness/adapters/primitives.hpp"
#include "harness/io/glob.hpp"
#include "harness/io/nearest.hpp"
#include "harness/io/shell.hpp"
#include "harness/measure/machine.hpp"
#include "harness/problem/suites.hpp"
#include "harness/problem/threads.hpp"
#include "harness/ranks/mpi_session.hpp"
#include "kernels/common/opencl/devices.hpp"

namespace stepladder {
namespace {

// One option's globs, over all primitives.
class Globs {
 public:
  // `what`: "variant", "problem" or "direction", for messages.
  Globs(std::string what, const std::string& list) : what_(std::move(what)), list_(list) {
    for (std::string& glob : split_globs(list))
      if (!glob.empty()) globs_.push_back(std::move(glob));
  }

  const std::vector<std::string>& all() const { return globs_; }
  const std::string& list() const { return list_; }
  void set_matched(const std::string& glob) { matched_.insert(glob); }
  // Records a name, and which globs match it.
  void note(const std::string& name) {
    names_.push_back(name);
    for (const std::string& glob : globs_)
      if (glob_matches(glob, name)) set_matched(glob);
  }

  // Whether one of them matches `name`, or there are none.
  bool match(const std::string& name) const {
    return globs_.empty() ||
           std::any_of(globs_.begin(), globs_.end(),
                       [&](const std::string& glob) { return glob_matches(glob, name); });
  }

  // Throws UnknownName for the first glob that matched no recorded name, if there were names.
  void require_matches(const std::string& of_primitive) const {
    for (const std::string& glob : globs_)
      if (!names_.empty() && !matched_.contains(glob))
        throw UnknownName(what_ + of_primitive, glob, names_);
  }

 private:
  std::string what_, list_;
  std::vector<std::string> globs_, names_;
  std::set<std::string> matched_;
};

std::string of(const PrimitiveType& type) { return fmt::format(" of {}", type.name()); }

std::string without_primitive(const std::string& kind) { return kind.substr(0, kind.find(" of ")); }

std::vector<std::string> names_of(const std::vector<Variant>& variants) {
  std::vector<std::string> names;
  for (const Variant& variant : variants) names.push_back(variant.name);
  return names;
}

UnknownName lacks_place(const PrimitiveType& type, const std::string& place) {
  std::vector<std::string> places;
  for (const Place other : {Place::cpu, Place::cuda, Place::opencl})
    if (!at_place(type.variants(), name_of(other)).empty()) places.emplace_back(name_of(other));
  return {"place" + of(type), place, places};
}

// In ladder order; without globs, the choice of select_variants(). Throws UnknownName for no
// variant.
std::vector<Variant> select(const PrimitiveType& type, Globs& globs, const std::string& place) {
  const std::vector<Variant> all = variants_for(type, globs.list());
  for (const Variant& variant : all) {
    globs.note(variant.name);
    globs.note(variant.info->name);  // "simd" selects a build of it
  }
  std::set<std::string> chosen;
  if (globs.all().empty())
    for (const Variant& variant : select_variants(type, "")) chosen.insert(variant.name);
  for (const std::string& glob : globs.all()) {
    try {
      for (const Variant& variant : select_variants(type, glob)) chosen.insert(variant.name);
      globs.set_matched(glob);
    } catch (const UnknownName&) {
      // it may match in another primitive
    }
  }
  if (at_place(all, place).empty()) throw lacks_place(type, place);
  if (chosen.empty()) throw UnknownName("variant" + of(type), globs.list(), names_of(all));
  std::vector<Variant> here = at_place(all, place);
  const std::vector<std::string> names = names_of(here);
  const bool is_default = globs.all().empty() && place.empty();  // without the ladder of OpenCL
  std::erase_if(here, [&](const Variant& variant) {
    return !chosen.contains(variant.name) || (is_default && variant.info->place == Place::opencl);
  });
  if (here.empty()) throw UnknownName(place + " variant" + of(type), globs.list(), names);
  if (!at_place(here, name_of(Place::opencl)).empty()) opencl::expect_rungs();
  return here;
}

using Problems = std::vector<std::unique_ptr<Case>>;
using Text = std::string ProblemInfo::*;

// Removes the problems that match none of the globs. Throws UnknownName when none is left.
void keep(Problems& problems, Globs& globs, Text text, const std::string& what) {
  std::vector<std::string> names;
  for (const auto& problem : problems) names.push_back(problem->info().*text);
  std::erase_if(problems, [&](const auto& problem) { return !globs.match(problem->info().*text); });
  if (problems.empty()) throw UnknownName(what, globs.list(), names);
}

void keep(Problems& problems, Globs& names, Globs& directions, const PrimitiveType& type) {
  for (const auto& problem : problems) {  // a glob counts as matched whatever the others select
    names.note(problem->info().name);
    directions.note(problem->info().direction);
  }
  keep(problems, names, &ProblemInfo::name, "problem" + of(type));
  keep(problems, directions, &ProblemInfo::direction, "direction" + of(type));
}

Problems problems_of_shapes(const PrimitiveType& type, const std::vector<std::string>& shapes,
                            int ranks) {
  Problems all;
  for (const std::string& text : without_repeats(shapes)) {  // the name identifies the results
    Problems problems = shape_problems(type, text, ranks);
    std::move(problems.begin(), problems.end(), std::back_inserter(all));
  }
  return all;
}

std::string left_out(const PrimitiveType& type, const UnknownName& error) {
  return fmt::format("left out: {} has no {} '{}'", type.name(), without_primitive(error.kind()),
                     error.name());
}

// The error of several primitives that lack what was asked for.
UnknownName common_error(const std::vector<UnknownName>& errors) {
  if (errors.size() == 1) return errors.front();
  std::vector<std::string> nearest;
  for (const UnknownName& error : errors)
    nearest.insert(nearest.end(), error.suggestions().begin(), error.suggestions().end());
  return {without_primitive(errors.front().kind()), errors.front().name(), nearest};
}

// Suites of a list with commas, each once. Every name must be one of some primitive.
class Suites {
 public:
  explicit Suites(const std::string& list) {
    if (list.empty()) return;
    names_ = without_repeats(split_globs(list));
    if (std::find(names_.begin(), names_.end(), "") != names_.end())
      throw CLI::ValidationError("--suite",
                                 fmt::format("expected names such as layers,thin, not '{}'", list));
  }

  // The problems of those suites that the primitive has. Throws UnknownName if it has none of them.
  Problems load(const PrimitiveType& type, int ranks) {
    Problems all;
    for (const std::string& name : names_) {
      try {
        Problems problems = load_suite(type, stepladder::suite_file(type), name, ranks);
        std::move(problems.begin(), problems.end(), std::back_inserter(all));
      } catch (const UnknownName& error) {
        lacking_[name].push_back(error);
        lines_.push_back(left_out(type, error));
      }
    }
    if (!all.empty() || names_.empty()) return all;
    lines_.resize(lines_.size() - names_.size());
    throw UnknownName(lacking_.at(names_.front()).back());
  }

  // Throws UnknownName for the first suite that no primitive has, chosen or not.
  void require_known(int ranks) const {
    for (const auto& [name, errors] : lacking_) {
      const auto has = [&, &suite = name](const PrimitiveType* type) {
        try {
          return !load_suite(*type, stepladder::suite_file(*type), suite, ranks).empty();
        } catch (const UnknownName&) {
          return false;
        }
      };
      const auto& all = stepladder::primitives();
      if (std::none_of(all.begin(), all.end(), has)) throw common_error(errors);
    }
  }

  // A line for each primitive and suite that it lacks, if it has another one of the list.
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> names_, lines_;
  std::map<std::string, std::vector<UnknownName>> lacking_;  // by suite
};

// Ranks of other hosts may have other suites and libraries.
void require_same_on_all_ranks(const std::vector<Work>& all) {
  std::vector<std::string> variants, problems;
  for (const Work& work : all) {
    const char* type = work.type->name();
    for (const Variant& variant : work.variants) variants.push_back(line_of(*work.type, variant));
    for (const auto& problem : work.problems)
      problems.push_back(fmt::format("{} {} of {}, {}", type, problem->info().direction,
                                     problem->info().name, problem->info().shape));
  }
  mpi_session().require_same("list of variants", variants);
  mpi_session().require_same("list of problems", problems);
}

}  // namespace

void Selection::add_options(CLI::App& app) {
  app.add_option("primitives", primitives,
                 "matmul, convolution, max_pool, average_pool, sgd_update, all_reduce, reorder, "
                 "low_precision, layers; all by default");
  app.add_option("--variant", variant, "Glob patterns of variant names, such as 'simd_*,openblas'");
  add_place_option(app, place);
  app.add_option("--suite", suite,
                 "Suites of bench/suites, such as quick, layers, alexnet, squares, thin, random, "
                 "deepbench, layouts; several as layers,thin");
  app.add_option("--suite-file", suite_file,
                 "File of problems, in the form of bench/suites/<primitive>.csv")
      ->excludes("--suite");
  app.add_option(
         "--shape", shapes,
         "Sizes of a problem without a file: 64x512x784 is m x n x k of matmul. The columns of "
         "bench/suites/<primitive>.csv in order; more as '... COLUMN=VALUE'. Repeatable")
      ->excludes("--suite")
      ->excludes("--suite-file")
      ->allow_extra_args(false);
  app.add_option("--problem", problem,
                 "Glob patterns of problem names, such as 'mlp.*,mnist_cnn.fc1.*'");
  app.add_option("--direction", direction,
                 "Glob patterns of directions, such as 'forward,backward_*'");
}

std::vector<const PrimitiveType*> Selection::types() const {
  if ((!suite_file.empty() || !shapes.empty()) && primitives.size() != 1)
    throw CLI::ValidationError(
        shapes.empty() ? "--suite-file" : "--shape",
        "holds problems of one primitive; name that primitive, and it alone");
  const auto all = stepladder::primitives();
  std::vector<const PrimitiveType*> chosen;
  if (primitives.empty()) chosen.assign(all.begin(), all.end());
  for (const std::string& name : without_repeats(primitives)) chosen.push_back(&primitive(name));
  for (const PrimitiveType* type : chosen)
    if (type->needs_ranks()) mpi_session().start();
  return chosen;
}

std::vector<Work> Selection::work(const std::string& default_suite) const {
  std::vector<std::string> lines;
  std::vector<Work> all = mpi_session().agree([&] { return load(default_suite, lines); });
  require_same_on_all_ranks(all);
  if (!primitives.empty() && mpi_session().rank() == 0)
    for (const std::string& line : lines) fmt::print(stderr, "{}\n", line);
  return all;
}

std::vector<Work> Selection::load(const std::string& default_suite,
                                  std::vector<std::string>& lines) const {
  Globs variants("variant", variant), problems("problem", problem),
      directions("direction", direction);
  Suites suites(suite.empty() ? default_suite : suite);
  const auto load = [&](const PrimitiveType& type) -> Problems {
    const int ranks = mpi_session().ranks();
    if (!shapes.empty()) return problems_of_shapes(type, shapes, ranks);
    if (!suite_file.empty()) return load_suite(type, suite_file, "", ranks);
    return suites.load(type, ranks);
  };

  std::vector<Work> all;
  std::vector<UnknownName> errors;
  const std::vector<const PrimitiveType*> chosen = types();
  for (const PrimitiveType* type : chosen) {
    Work work{type, {}, {}};
    std::vector<UnknownName> unknown;
    const auto attempt = [&](const auto& step) {
      try {
        step();
      } catch (const UnknownName& error) {
        unknown.push_back(error);
      }
    };
    // Both, so that it is known which globs match in this primitive.
    attempt([&] { work.variants = select(*type, variants, place); });
    attempt([&] {
      work.problems = load(*type);
      if (!work.problems.empty()) keep(work.problems, problems, directions, *type);
    });
    if (unknown.empty()) {
      all.push_back(std::move(work));
      continue;
    }
    errors.push_back(unknown.front());
    lines.push_back(left_out(*type, unknown.front()));
  }
  const std::string of_primitive = chosen.size() == 1 ? of(*chosen.front()) : "";
  for (const Globs* globs : {&variants, &problems, &directions})
    globs->require_matches(of_primitive);
  suites.require_known(mpi_session().ranks());
  if (all.empty()) throw common_error(errors);
  lines.insert(lines.end(), suites.lines().begin(), suites.lines().end());
  return all;
}

std::string Selection::problems_argument() const {
  if (!shapes.empty()) {
    std::string arguments;
    for (const std::string& text : shapes)
      arguments += (arguments.empty() ? "--shape " : " --shape ") + shell_quoted(text);
    return arguments;
  }
  if (!suite_file.empty()) return "--suite-file " + shell_quoted(suite_file);
  return {};
}

void add_place_option(CLI::App& app, std::string& place) {
  app.add_option(
         "--place", place,
         "Variants that run there: cpu, cuda or opencl (only where it is named, or its rungs)")
      ->check(CLI::IsMember({"cpu", "cuda", "opencl"}));
}

std::vector<Variant> at_place(const std::vector<Variant>& variants, const std::string& place) {
  std::vector<Variant> there;
  for (const Variant& variant : variants)
    if (place.empty() || place == name_of(variant.info->place)) there.push_back(variant);
  return there;
}

std::vector<Ladder> ladders_at(const std::vector<const PrimitiveType*>& types,
                               const std::string& place) {
  std::vector<Ladder> ladders;
  std::vector<UnknownName> errors;
  for (const PrimitiveType* type : types) {
    std::vector<Variant> variants = at_place(type->variants(), place);
    if (variants.empty())
      errors.push_back(lacks_place(*type, place));
    else
      ladders.push_back({type, std::move(variants)});
  }
  if (ladders.empty()) throw common_error(errors);
  return ladders;
}

std::string line_of(const PrimitiveType& type, const Variant& variant) {
  return fmt::format("{} {}{}", type.name(), variant.name,
                     variant.why_unavailable.empty() ? "" : ", unavailable");
}

std::vector<int> default_threads() {
  const int all = detect_machine().threads_available;
  return all > 1 ? std::vector<int>{1, all} : std::vector<int>{1};
}

std::vector<int> threads_that_run(const std::vector<int>& threads) {
  std::vector<int> all;
  std::string reason;
  for (const int count : without_repeats(threads)) {
    const std::string why_not = why_fewer_threads(count);
    if (why_not.empty()) {
      all.push_back(count);
      continue;
    }
    if (!reason.empty()) fmt::print(stderr, "left out: {}\n", reason);
    reason = why_not;
  }
  if (all.empty()) throw std::runtime_error(reason);
  if (!reason.empty()) fmt::print(stderr, "left out: {}\n", reason);
  return all;
}

}  // namespace stepladder
