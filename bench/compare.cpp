// stepladder compare: compares two runs row by row.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/commands.hpp"
#include "harness/io/csv.hpp"
#include "harness/measure/statistics.hpp"
#include "harness/results/result_columns.hpp"

namespace stepladder {
namespace {

struct Options {
  std::string before, after;
  double threshold = 5, significance = 0.05;
  bool json = false;
};

struct Key {
  std::string primitive, direction, problem, variant;
  std::int64_t threads, ranks;
  auto operator<=>(const Key&) const = default;
  std::string text() const {
    return fmt::format("{} {} {} {} t{} r{}", primitive, direction, problem, variant, threads,
                       ranks);
  }
};
using Times = std::map<Key, std::vector<double>>;

// The undisturbed samples of each row; all samples of a row when most were disturbed.
Times read_samples(const std::filesystem::path& run) {
  const CsvFile file(run / "samples.csv", samples_columns().names());
  constexpr std::int64_t most = 1 << 20;
  Times quiet, all;
  for (const CsvRow& row : file.rows()) {
    const Key key{
        row.text("primitive"), row.text("direction"),           row.text("problem"),
        row.text("variant"),   row.integer("threads", 0, most), row.integer("ranks", 0, most)};
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

// One row of both runs. The interval of the ratio takes the worst ends of both intervals.
struct Comparison {
  Key key;
  Summary before, after;
  double p;
  std::string verdict;  // "slower", "faster" or "same"

  double ratio() const { return after.median / before.median; }
  double low() const { return after.ci_low / before.ci_high; }
  double high() const { return after.ci_high / before.ci_low; }
};

Comparison compare(const Key& key, const std::vector<double>& before,
                   const std::vector<double>& after, const Options& options) {
  Comparison c{key, summarize(before), summarize(after), rank_test(before, after), "same"};
  if (c.p < options.significance) {
    if (c.ratio() > 1 + options.threshold / 100) c.verdict = "slower";
    if (c.ratio() < 1 - options.threshold / 100) c.verdict = "faster";
  }
  return c;
}

struct Result {
  std::vector<Comparison> rows;
  int only_in_one_run = 0;
  int count(const std::string& verdict) const {
    int found = 0;
    for (const Comparison& row : rows) found += row.verdict == verdict;
    return found;
  }
};

void print_table(const Result& result, const Options& options) {
  fmt::print("{:<74} {:>10} {:>10}  {:>6}  {:<15} {:>6}\n", "row", "old s", "new s", "ratio",
             "95 % interval", "p");
  for (const Comparison& c : result.rows)
    fmt::print("{:<74} {:>10.4g} {:>10.4g}  {:>6.3f}  {:>6.3f} .. {:<6.3f} {:>6.3f}{}\n",
               c.key.text(), c.before.median, c.after.median, c.ratio(), c.low(), c.high(), c.p,
               c.verdict == "slower"   ? "  SLOWER"
               : c.verdict == "faster" ? "  faster"
                                       : "");
  fmt::print(
      "{} slower, {} faster, {} without a significant difference above {:g} %, {} in one run "
      "only\n",
      result.count("slower"), result.count("faster"), result.count("same"), options.threshold,
      result.only_in_one_run);
}

void print_json(const Result& result, const Options& options) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  for (const Comparison& c : result.rows)
    rows.push_back({{"primitive", c.key.primitive},
                    {"direction", c.key.direction},
                    {"problem", c.key.problem},
                    {"variant", c.key.variant},
                    {"threads", c.key.threads},
                    {"ranks", c.key.ranks},
                    {"old_s", c.before.median},
                    {"new_s", c.after.median},
                    {"ratio", c.ratio()},
                    {"ratio_low", c.low()},
                    {"ratio_high", c.high()},
                    {"p", c.p},
                    {"verdict", c.verdict}});
  const Json json = {{"schema_version", 1},
                     {"old", options.before},
                     {"new", options.after},
                     {"threshold_percent", options.threshold},
                     {"significance", options.significance},
                     {"rows", rows},
                     {"totals",
                      {{"slower", result.count("slower")},
                       {"faster", result.count("faster")},
                       {"same", result.count("same")},
                       {"in_one_run_only", result.only_in_one_run}}}};
  fmt::print("{}\n", json.dump(1, ' ', false, Json::error_handler_t::replace));
}

int run(const Options& options) {
  const Times before = read_samples(options.before), after = read_samples(options.after);
  Result result;
  for (const auto& [key, times] : after)
    if (const auto found = before.find(key); found != before.end())
      result.rows.push_back(compare(key, found->second, times, options));
  const auto common = static_cast<int>(result.rows.size());
  result.only_in_one_run = static_cast<int>(before.size() + after.size()) - 2 * common;
  if (options.json)
    print_json(result, options);
  else
    print_table(result, options);
  if (common == 0)
    throw std::runtime_error(
        fmt::format("{} and {} have no row in common", options.before, options.after));
  return result.count("slower") > 0 ? 1 : 0;
}

}  // namespace

Command compare_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "compare",
      "Compare two runs; exit 1 on a significant slowdown, 2 when they cannot be compared");
  auto options = std::make_shared<Options>();
  app->add_option("old", options->before, "Folder of the earlier run")->required();
  app->add_option("new", options->after, "Folder of the later run")->required();
  app->add_option("--threshold", options->threshold, "Smallest change of a median, in percent")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--significance", options->significance, "Significance level of the rank test")
      ->check(CLI::Range(0.0, 1.0));
  app->add_flag("--json", options->json, "Print the result as JSON");
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
