// stepladder compare: two runs, row by row.
#include <fmt/format.h>

#include <map>
#include <memory>

#include "bench/commands.hpp"
#include "harness/io/csv.hpp"
#include "harness/measure/statistics.hpp"
#include "harness/results/results.hpp"

namespace stepladder {
namespace {

struct Options {
  std::string before, after;
  double threshold = 5, significance = 0.05;
};

using Times = std::map<std::string, std::vector<double>>;  // by row

// The undisturbed samples of each row; all of a row's where most were disturbed.
Times read_samples(const std::filesystem::path& run) {
  const CsvFile file(run / "samples.csv", samples_columns);
  Times quiet, all;
  for (const CsvRow& row : file.rows()) {
    const std::string key = fmt::format(
        "{} {} {} {} t{} r{}", row.text("primitive"), row.text("direction"), row.text("problem"),
        row.text("variant"), row.text("threads"), row.text("ranks"));
    const double seconds = std::strtod(row.text("seconds").c_str(), nullptr);
    if (!(seconds > 0))
      row.fail(fmt::format("column seconds holds \"{}\"; expected a time", row.text("seconds")));
    all[key].push_back(seconds);
    if (row.text("marked").empty()) quiet[key].push_back(seconds);
  }
  for (auto& [key, times] : all)
    if (2 * quiet[key].size() >= times.size()) times = quiet[key];
  return all;
}

// Interval of the ratio of medians from the intervals of both: conservative, since it takes the worst of each.
struct Ratio {
  double value, low, high, p;
};
Ratio ratio_of(const std::vector<double>& before, const std::vector<double>& after) {
  const Summary b = summarize(before), a = summarize(after);
  return {a.median / b.median, a.ci_low / b.ci_high, a.ci_high / b.ci_low,
          rank_test(before, after)};
}

int run(const Options& options) {
  const Times before = read_samples(options.before), after = read_samples(options.after);
  int slower = 0, faster = 0, same = 0, alone = 0;
  fmt::print("{:<74} {:>10} {:>10}  {:>6}  {:<15} {:>6}\n", "row", "old s", "new s", "ratio",
             "95 % interval", "p");
  for (const auto& [key, times] : after) {
    const auto found = before.find(key);
    if (found == before.end()) {
      ++alone;
      continue;
    }
    const Ratio r = ratio_of(found->second, times);
    const bool significant = r.p < options.significance;
    const bool is_slower = significant && r.value > 1 + options.threshold / 100;
    const bool is_faster = significant && r.value < 1 - options.threshold / 100;
    slower += is_slower;
    faster += is_faster;
    same += !is_slower && !is_faster;
    fmt::print("{:<74} {:>10.4g} {:>10.4g}  {:>6.3f}  {:>6.3f} .. {:<6.3f} {:>6.3f}{}\n", key,
               summarize(found->second).median, summarize(times).median, r.value, r.low, r.high,
               r.p,
               is_slower   ? "  SLOWER"
               : is_faster ? "  faster"
                           : "");
  }
  for (const auto& [key, times] : before) alone += after.contains(key) ? 0 : 1;
  fmt::print(
      "{} slower, {} faster, {} without a significant difference above {:g} %, {} in one run "
      "only\n",
      slower, faster, same, options.threshold, alone);
  if (slower + faster + same == 0)
    throw std::runtime_error(
        fmt::format("{} and {} have no row in common", options.before, options.after));
  return slower > 0 ? 1 : 0;
}

}  // namespace

Command compare_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "compare",
      "Two runs row by row; exit 1 on a significant slowdown, 2 when they cannot be compared");
  auto options = std::make_shared<Options>();
  app->add_option("old", options->before, "Folder of the earlier run")->required();
  app->add_option("new", options->after, "Folder of the later run")->required();
  app->add_option("--threshold", options->threshold, "Per cent that a median must move to count")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--significance", options->significance, "Of the rank test")
      ->check(CLI::Range(0.0, 1.0));
  return {app, [options] {
            try {
              return run(*options);
            } catch (const std::exception& error) {  // 1 would look like a slowdown
              fmt::print(stderr, "stepladder: {}\n", error.what());
              return 2;
            }
          }};
}

}  // namespace stepladder
