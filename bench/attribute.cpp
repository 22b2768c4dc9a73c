// stepladder attribute: measures every combination of a primitive's techniques and prints what each
// buys: alone, last, and on average over all orders.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "bench/bench.hpp"
#include "bench/commands.hpp"
#include "bench/option_checks.hpp"
#include "harness/adapters/primitives.hpp"
#include "harness/io/csv.hpp"
#include "harness/io/file.hpp"
#include "harness/io/nearest.hpp"
#include "harness/io/number.hpp"
#include "harness/results/result_columns.hpp"
#include "harness/results/run_folder.hpp"
#include "kernels/common/lattice.hpp"

namespace stepladder {
namespace {

std::string times(double factor) {
  return factor < 10 ? fmt::format("{:.2f}x", factor) : fmt::format("{:.1f}x", factor);
}
std::string interval(const Factor& factor) {
  return fmt::format("{} .. {}", times(factor.low), times(factor.high));
}

// The corners of one problem in summary.csv.
struct Corners {
  std::string shape;
  double flops = 0;
  int threads = 1;
  std::map<unsigned, CornerTime> times;
  std::map<unsigned, std::string> missing;  // why
};
using Key = std::pair<std::string, std::string>;  // problem, direction

std::map<Key, Corners> read_corners(const std::filesystem::path& summary,
                                    const PrimitiveType& type) {
  std::map<std::string, unsigned> corner_of;
  for (const Variant& variant : type.corners()) corner_of[variant.name] = variant.info->corner;
  const CsvFile file(summary, {"primitive", "variant", "problem", "direction", "shape", "threads",
                               "status", "reason", "median_s", "ci_low_s", "ci_high_s", "flops"},
                     summary_columns().names());
  std::map<Key, Corners> found;
  for (const CsvRow& row : file.rows()) {
    const auto corner = corner_of.find(row.text("variant"));
    if (row.text("primitive") != type.name() || corner == corner_of.end()) continue;
    if (row.text("problem").empty())  // it can run no problem here
      throw std::runtime_error(fmt::format("{}: {}", row.text("variant"), row.text("reason")));
    Corners& corners = found[{row.text("problem"), row.text("direction")}];
    corners.shape = row.text("shape");
    const auto value = [&](const char* column) {
      return number_in<double>(row.text(column)).value_or(0);
    };
    corners.flops = value("flops");
    corners.threads = std::max<int>(
        corners.threads, static_cast<int>(row.integer("threads", 1, most_threads)));
    if (row.text("status") == "ok")
      corners.times[corner->second] = {value("median_s"), value("ci_low_s"), value("ci_high_s")};
    else
      corners.missing[corner->second] = row.text("variant") + ": " + row.text("reason");
  }
  return found;
}

void print_table(const Attribution& found, std::span<const std::string> names) {
  fmt::print("  {:<10} {:>8} {:>8} {:>8}  {:<18} {:<34} {}\n", "technique", "alone", "last",
             "average", "95 % interval", "least, after", "most, after");
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Attribution::Technique& t = found.techniques[i];
    fmt::print("  {:<10} {:>8} {:>8} {:>8}  {:<18} {:<34} {}\n", names[i], times(t.alone.value),
               times(t.last.value), times(t.average.value), interval(t.average),
               fmt::format("{} {}", times(t.least.value), names_of(t.least_after, names)),
               fmt::format("{} {}", times(t.most.value), names_of(t.most_after, names)));
  }
  fmt::print("  {:<10} {:>8} {:>8} {:>8}  {}\n", "all", "", "", times(found.total.value),
             interval(found.total));
  std::vector<Attribution::Pair> clear;
  for (const Attribution::Pair& pair : found.pairs)
    if (pair.together.low > 1 || pair.together.high < 1) clear.push_back(pair);
  std::sort(clear.begin(), clear.end(), [](const auto& a, const auto& b) {
    return a.together.value > b.together.value;
  });
  for (const Attribution::Pair& pair : clear)
    fmt::print("  {} and {} {}: {} ({})\n", names[static_cast<std::size_t>(pair.first)],
               names[static_cast<std::size_t>(pair.second)],
               pair.together.value > 1 ? "help each other" : "gain less together",
               times(pair.together.value), interval(pair.together));
}

// One for each technique and pair, and one for all; `common` has what they share.
std::vector<AttributionRow> rows_of(const Attribution& found, std::span<const std::string> names,
                                    const AttributionRow& common) {
  std::vector<AttributionRow> rows;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Attribution::Technique& t = found.techniques[i];
    AttributionRow& row = rows.emplace_back(common);
    row.technique = names[i];
    row.alone = t.alone, row.last = t.last, row.average = t.average;
    row.least = t.least, row.least_after = names_of(t.least_after, names);
    row.most = t.most, row.most_after = names_of(t.most_after, names);
  }
  for (const Attribution::Pair& pair : found.pairs) {
    AttributionRow& row = rows.emplace_back(common);
    row.technique = names[static_cast<std::size_t>(pair.first)];
    row.partner = names[static_cast<std::size_t>(pair.second)];
    row.together = pair.together;
  }
  rows.emplace_back(common).technique = "all";
  rows.back().average = found.total;
  return rows;
}

// The names of all corners, built for the widest instruction set of this CPU.
std::string widest_corners(const PrimitiveType& type) {
  std::map<unsigned, std::string> names;  // the narrowest comes first
  for (const Variant& variant : type.corners())
    if (variant.why_unavailable.empty()) names[variant.info->corner] = variant.name;
  std::string all;
  for (const auto& [corner, name] : names) all += (all.empty() ? "" : ",") + name;
  return all;
}

// The corners are no rungs: their rows are in RUN/attribution, with the ceilings of RUN.
void use_folder_of_its_own(BenchCommand& command) {
  const std::filesystem::path run =
      command.out.empty() ? default_run_directory() : std::filesystem::path(command.out);
  const std::filesystem::path folder = run / "attribution", name = "ceilings.json";
  command.out = folder.string();
  if (exists(run / name) && !exists(folder / name)) {
    create_directories(folder);
    copy_file(run / name, folder / name);
    command.resume = true;
  }
}

// Adds the rows of a primitive's problems to `lines`, and prints their tables if `prints`. Returns
// whether all combinations of all problems have a time.
bool attribute(const PrimitiveType& type, const std::filesystem::path& summary, bool prints,
               std::string& lines) {
  std::vector<std::string> names;
  for (const Switch& on : type.corners().front().info->lattice->switches)
    names.emplace_back(on.name);
  const std::size_t count = std::size_t{1} << names.size();
  bool is_whole = true;
  for (const auto& [key, corners] : read_corners(summary, type)) {
    const auto& [problem, direction] = key;
    if (corners.times.size() != count) {
      is_whole = false;
      fmt::print(
          stderr, "{} {} {} is left out: {} of {} combinations have no time; {}\n", type.name(),
          direction, problem, count - corners.times.size(), count,
          corners.missing.empty() ? "the run is not complete" : corners.missing.begin()->second);
      continue;
    }
    std::vector<CornerTime> all;
    for (const auto& [bits, time] : corners.times) all.push_back(time);
    const Attribution found = stepladder::attribute(all);
    const AttributionRow common{.primitive = type.name(),
                                .direction = direction,
                                .problem = problem,
                                .shape = corners.shape,
                                .threads = corners.threads};
    for (const AttributionRow& row : rows_of(found, names, common))
      lines += csv_line(attribution_columns().line(row));
    if (!prints) continue;
    const auto speed = [&](const CornerTime& time) {
      return corners.flops > 0 ? fmt::format("{:.3g} GFLOP/s", corners.flops / time.seconds / 1e9)
                               : fmt::format("{:.3g} us", 1e6 * time.seconds);
    };
    fmt::print("\n{} {} {}, {}, {} {}: {} without, {} with all techniques\n", type.name(),
               direction, problem, corners.shape, corners.threads,
               corners.threads > 1 ? "threads" : "thread", speed(all.front()), speed(all.back()));
    print_table(found, names);
  }
  return is_whole;
}

// Of all primitives in the run folder; the tables of the one that was measured now.
int attribute(const BenchCommand& command) {
  const std::filesystem::path folder = command.out;
  std::string lines = csv_line(attribution_columns().names());
  bool is_whole = true;
  for (const PrimitiveType* type : primitives())
    if (!type->corners().empty()) {
      const bool is_measured = type->name() == command.selection.primitives.front();
      is_whole = attribute(*type, folder / "summary.csv", is_measured, lines) && is_whole;
    }
  replace_file(folder / "attribution.csv", lines);
  fmt::print("\n{}\n", (folder / "attribution.csv").string());
  return is_whole ? 0 : 1;
}

}  // namespace

Command attribute_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "attribute", "Measure what each technique buys, alone, last and averaged over all orders");
  auto command = std::make_shared<BenchCommand>();
  std::vector<std::string> with_lattice;
  for (const PrimitiveType* type : primitives())
    if (!type->corners().empty()) with_lattice.emplace_back(type->name());
  command->selection.primitives.resize(1);
  app->add_option("primitive", command->selection.primitives.front(), "One with a lattice")
      ->check(CLI::IsMember(with_lattice))
      ->required();
  Selection& selection = command->selection;
  app->add_option("--suite", selection.suite, "Problems of these suites; attribution by default");
  app->add_option("--problem", selection.problem, "Problems with names like these globs");
  app->add_option("--direction", selection.direction, "Directions like these globs");
  app->add_option("--shape", selection.shapes, "A shape instead of a suite, as in bench")
      ->allow_extra_args(false)
      ->excludes("--suite");
  auto threads = std::make_shared<int>(default_threads().back());
  app->add_option("--threads", *threads, "Number of threads of the technique")
      ->transform(whole_number(1, most_threads));
  add_run_options(*app, *command);
  return {app, [command, threads] {
            command->selection.variant =
                widest_corners(primitive(command->selection.primitives.front()));
            if (command->selection.suite.empty()) command->selection.suite = "attribution";
            if (!command->selection.shapes.empty()) command->selection.suite.clear();
            command->bench.threads = {*threads};
            use_folder_of_its_own(*command);
            command->then = [&] { return attribute(*command); };
            return run_bench(command);
          }};
}

}  // namespace stepladder
