// stepladder try: verifies one rung and measures it in turns with the one below it, the other rungs
// that a step would choose from, and the libraries.
#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>

#include "bench/bench.hpp"
#include "bench/commands.hpp"
#include "bench/hot_loop.hpp"
#include "bench/option_checks.hpp"
#include "bench/plugins.hpp"
#include "bench/row_table.hpp"
#include "harness/adapters/primitives.hpp"
#include "harness/io/counted.hpp"
#include "harness/io/file.hpp"
#include "harness/io/nearest.hpp"
#include "harness/io/shell.hpp"
#include "harness/results/attribution.hpp"
#include "harness/results/run_folder.hpp"
#include "harness/rungs/use_spec.hpp"

namespace stepladder {
namespace {

struct TryOptions {
  std::string rung, primitive;
  int random = 40;
  bool assembly = false;
};

bool is_named(const Variant& variant, const std::string& name) {
  return variant.name == name || variant.info->name == name;
}

// The widest available build of the name; the first one if none is.
const Variant* widest(const std::vector<Variant>& variants, const std::string& name) {
  const Variant* found = nullptr;
  for (const Variant& variant : variants)
    if (is_named(variant, name) && (found == nullptr || variant.why_unavailable.empty()))
      found = &variant;
  return found;
}

// The primitive that has the rung. Throws UnknownName if there is none, std::runtime_error if
// several have.
const PrimitiveType& primitive_of(const TryOptions& options) {
  if (!options.primitive.empty()) {
    const PrimitiveType& type = primitive(options.primitive);
    std::vector<std::string> names;
    for (const Variant& variant : type.variants()) names.emplace_back(variant.info->name);
    if (widest(type.variants(), options.rung) == nullptr)
      throw UnknownName("rung of " + options.primitive, options.rung, names);
    return type;
  }
  std::vector<const PrimitiveType*> types;
  std::vector<std::string> names;
  std::string found;
  for (const PrimitiveType* type : primitives()) {
    for (const Variant& variant : type->variants()) names.emplace_back(variant.info->name);
    if (widest(type->variants(), options.rung) == nullptr) continue;
    types.push_back(type);
    found += (found.empty() ? "" : ", ") + std::string(type->name());
  }
  if (types.empty()) throw UnknownName("rung", options.rung, names);
  if (types.size() > 1)
    throw std::runtime_error(
        fmt::format("{} have a rung {}; name one with --primitive", found, options.rung));
  return *types.front();
}

// Log of the ratio of two times over the problems that both rows have, with its standard error.
struct Comparison {
  double log_ratio = 0, variance = 0;
  int problems = 0;

  void add(const TableRow& other, const TableRow& own) {
    log_ratio += std::log(*other.seconds / *own.seconds);
    for (const TableRow* row : {&other, &own})
      if (row->low && row->high) variance += std::pow(log_error(*row->low, *row->high), 2);
    ++problems;
  }
  double ratio() const { return std::exp(log_ratio / problems); }
  // Half of the interval of the logarithm.
  double half() const { return two_sided_95 * std::sqrt(variance) / problems; }
  bool shows_a_difference() const { return std::abs(log_ratio / problems) > half(); }
  std::string text() const {
    return fmt::format("{} as fast ({} .. {})", factor_text(ratio()),
                       factor_text(ratio() * std::exp(-half())),
                       factor_text(ratio() * std::exp(half())));
  }
};

// What a rung that has no thread takes counts with any number of threads.
using ByProblem = std::map<std::pair<std::string, std::string>, const TableRow*>;
ByProblem rows_of(const std::vector<TableRow>& rows, const std::string& variant, int threads) {
  ByProblem found;
  for (const TableRow& row : rows)
    if (row.variant == variant && row.seconds && row.threads <= threads) {
      const TableRow*& best = found[{row.direction, row.problem}];
      if (best == nullptr || row.threads > best->threads) best = &row;
    }
  return found;
}

Comparison compare(const ByProblem& other, const ByProblem& own) {
  Comparison comparison;
  for (const auto& [problem, row] : own)
    if (const auto found = other.find(problem); found != other.end())
      comparison.add(*found->second, *row);
  return comparison;
}

// alike: the variants of the same precision, of which one may be the fastest.
void print_verdict(const std::vector<TableRow>& rows, const Variant& own, const std::string& parent,
                   const std::set<std::string>& alike, const std::vector<int>& threads) {
  for (const int count : threads) {
    const ByProblem mine = rows_of(rows, own.name, count);
    if (mine.empty() || (count > 1 && !own.info->threaded)) continue;
    fmt::print("\n{} on {}, geometric means:\n", own.name, counted(count, "thread"));
    const auto line = [&](const std::string& other, const char* what) {
      if (const Comparison found = compare(rows_of(rows, other, count), mine); found.problems > 0)
        fmt::print("  {} as {}, {}{}\n", found.text(), other, what,
                   found.shows_a_difference() ? "" : ": no difference is shown");
    };
    if (!parent.empty()) line(parent, "the rung below");
    for (const bool is_library : {false, true}) {
      std::string fastest;
      double least = 0;
      for (const TableRow& row : rows) {
        if (row.is_library != is_library || row.variant == own.name || !alike.contains(row.variant))
          continue;
        const Comparison found = compare(rows_of(rows, row.variant, count), mine);
        if (found.problems < static_cast<int>(mine.size())) continue;
        if (fastest.empty() || found.ratio() < least) fastest = row.variant, least = found.ratio();
      }
      if (!fastest.empty())
        line(fastest, is_library ? "the fastest library" : "the fastest other rung");
    }
  }
}

// Random problems, in a process of their own: one that crashes is told from one that is slow.
bool passes(const TryOptions& options, const PrimitiveType& type, const Variant& own,
            const std::string& plugins) {
  if (options.random == 0) return true;
  const std::string command =
      fmt::format("{} verify {} --variant {} --random {}{}",
                  shell_quoted(std::filesystem::read_symlink("/proc/self/exe").string()),
                  type.name(), shell_quoted(own.name), options.random, plugins);
  const int status = std::system(command.c_str());
  if (WIFEXITED(status) && WEXITSTATUS(status) > 128)
    fmt::print("{} ended with signal {}\n", own.name, WEXITSTATUS(status) - 128);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// The problem with the most arithmetic, or bytes, of those that the rung supports.
void print_inner_loop(const std::vector<Work>& work, const Variant& own) {
  constexpr double seconds = 0.5;
  constexpr std::uint64_t seed = 1;
  std::vector<Case*> problems;
  for (const auto& problem : work.front().problems) problems.push_back(problem.get());
  const auto size = [](const Case* problem) {
    return std::pair(problem->info().flops, problem->operand_bytes());
  };
  std::sort(problems.begin(), problems.end(),
            [&](const Case* a, const Case* b) { return size(a) > size(b); });
  for (Case* problem : problems) try {
      const std::unique_ptr<Runner> runner = problem->plan(own, {.threads = 1});
      problem->allocate(1, nullptr);
      problem->fill(Tier::accuracy, seed);
      problem->reset();
      runner->prepare();
      const HotLoop loop = find_hot_loop([&] { runner->run(0); }, seconds);
      fmt::print("\nInner loop of {} on {}{}{}, one thread: {:.0f} % of {} samples\n", own.name,
                 problem->info().shape, problem->info().direction.empty() ? "" : " ",
                 problem->info().direction, 100 * loop.share, loop.samples);
      print_hot_loop(loop);
      fmt::print("of {}\nin {}\n", loop.function, loop.file);
      return;
    } catch (const Unsupported&) {
      // the next one
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(fmt::format("--asm, {}: {}", own.name, error.what()));
    }
  throw std::runtime_error(fmt::format("--asm: {} supports none of these problems", own.name));
}

// results/local/try, of which only the ceilings are kept from one try to the next.
std::string emptied_folder() {
  const std::filesystem::path folder = default_run_directory().parent_path() / "try";
  create_directories(folder);
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename() != "ceilings.json") remove_all(entry.path());
  return folder.string();
}

int run(const TryOptions& options, const std::shared_ptr<BenchCommand>& command) {
  const PrimitiveType& type = primitive_of(options);
  const std::vector<Variant> all = type.variants();
  const Variant own = *widest(all, options.rung);
  if (const std::string why = why_not_here(type, own); !why.empty())
    throw std::runtime_error(fmt::format("{} cannot run here: {}", own.name, why));
  if (options.assembly && own.info->place != Place::cpu)
    throw std::runtime_error(
        fmt::format("--asm shows the code of CPUs; cuobjdump -sass shows that of {}", own.name));
  if (!passes(options, type, own, command->selection.plugins)) return 1;

  std::string parent, names = own.name;
  if (const Variant* below = widest(all, own.info->builds_on))
    names += "," + (parent = below->name);
  names += "," + all.front().name;
  for (const char* use : {"best", "compiler", "vendor"})
    for (const Variant& other : UseSpec(use).candidates(type)) names += "," + other.name;
  std::set<std::string> alike;
  for (const Variant& other : all) {
    if (other.info->precision != own.info->precision) continue;
    alike.insert(other.name);
    if (own.info->precision != Precision::fp32) names += "," + other.name;
  }
  command->selection.primitives = {type.name()};
  command->selection.variant = names;
  if (command->selection.shapes.empty() && command->selection.suite.empty())
    command->selection.suite = "quick";
  command->out = emptied_folder();
  command->resume = true;
  command->report = Report::tables;
  // A reference: the command would otherwise own itself.
  command->then = [own, parent, alike, &ran = *command, assembly = options.assembly] {
    const std::vector<Work> work = ran.selection.work("quick");
    print_verdict(read_rows(std::filesystem::path(ran.out) / "summary.csv", work), own, parent,
                  alike, ran.bench.threads);
    if (assembly) print_inner_loop(work, own);
    return 0;
  };
  return run_bench(command);
}

}  // namespace

Command try_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "try", "Verify one rung and measure it beside the one below, the others and the libraries");
  auto options = std::make_shared<TryOptions>();
  auto command = std::make_shared<BenchCommand>();
  command->bench.threads = default_threads();
  command->bench.measure.budget_seconds = 0.04;
  app->add_option("rung", options->rung, "Its name")->required();
  app->add_option("--primitive", options->primitive, "Primitive, where several have such a rung");
  app->add_option("--random", options->random, "Random problems to verify it on first")
      ->transform(whole_number(0, 100'000));
  app->add_option("--suite", command->selection.suite, "Problems to measure; quick by default");
  app->add_option("--shape", command->selection.shapes, "A shape instead of a suite, as in bench")
      ->allow_extra_args(false)
      ->excludes("--suite");
  add_threads(*app, command->bench.threads, "Numbers of threads, for example 1,2");
  app->add_flag("--asm", options->assembly,
                "Show the instructions in which it spends its time, and what each does");
  add_plugin_options(*app, command->selection.plugins);
  app->add_option("--budget", command->bench.measure.budget_seconds,
                  "Seconds of timing for each row")
      ->check(positive_number());
  return {app, [options, command] { return run(*options, command); }};
}

}  // namespace stepladder
