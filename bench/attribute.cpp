// stepladder attribute: measures every combination of a primitive's techniques and prints what each
// buys: alone, last, and on average over all orders.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "bench/attribution_report.hpp"
#include "bench/bench.hpp"
#include "bench/commands.hpp"
#include "bench/option_checks.hpp"
#include "harness/adapters/primitives.hpp"
#include "harness/io/csv.hpp"
#include "harness/io/nearest.hpp"
#include "harness/io/number.hpp"
#include "harness/results/result_columns.hpp"
#include "kernels/common/lattice.hpp"

namespace stepladder {
namespace {

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
  const CsvFile file(summary,
                     {"primitive", "variant", "problem", "direction", "shape", "threads", "status",
                      "reason", "median_s", "ci_low_s", "ci_high_s", "flops"},
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
    corners.threads =
        std::max<int>(corners.threads, static_cast<int>(row.integer("threads", 1, most_threads)));
    if (row.text("status") == "ok")
      corners.times[corner->second] = {value("median_s"), value("ci_low_s"), value("ci_high_s")};
    else
      corners.missing[corner->second] = row.text("variant") + ": " + row.text("reason");
  }
  return found;
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
  const std::filesystem::path folder = attribution_folder(command.out), name = "ceilings.json";
  command.out = folder.string();
  if (exists(folder.parent_path() / name) && !exists(folder / name)) {
    create_directories(folder);
    copy_file(folder.parent_path() / name, folder / name);
    command.resume = true;
  }
}

int attribute(const BenchCommand& command) {
  const PrimitiveType& type = primitive(command.selection.primitives.front());
  const std::filesystem::path folder = command.out;
  std::vector<std::string> names;
  for (const Switch& on : type.corners().front().info->lattice->switches)
    names.emplace_back(on.name);
  const std::size_t count = std::size_t{1} << names.size();
  bool is_whole = true;
  for (const auto& [key, corners] : read_corners(folder / "summary.csv", type)) {
    const auto& [problem, direction] = key;
    if (corners.times.size() != count) {
      is_whole = false;
      fmt::print(
          stderr, "{} {} {} is left out: {} of {} combinations have no time; {}\n", type.name(),
          direction, problem, count - corners.times.size(), count,
          corners.missing.empty() ? "the run is not complete" : corners.missing.begin()->second);
      continue;
    }
    std::vector<CornerTime> times;
    for (const auto& [bits, time] : corners.times) times.push_back(time);
    report_attribution(folder,
                       {.primitive = type.name(),
                        .direction = direction,
                        .problem = problem,
                        .shape = corners.shape,
                        .threads = corners.threads},
                       names, times, corners.flops);
  }
  fmt::print("\n{}\n", (folder / "attribution.csv").string());
  return is_whole ? 0 : 1;
}

}  // namespace

Command attribute_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "attribute", "Measure what each technique buys, alone, last and averaged over all orders");
  app->footer("Of a whole training step: stepladder step --attribute --network NAME");
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
