// stepladder compare: compares two runs row by row.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "bench/commands.hpp"
#include "bench/option_checks.hpp"
#include "harness/results/comparison.hpp"

namespace stepladder {
namespace {

struct Options {
  std::string before, after;
  double threshold = 5, significance = 0.05;
  bool json = false;
};

std::string text_of(const RowKey& key) {
  return fmt::format("{} {} {} {} t{} r{}", key.primitive, key.direction, key.problem, key.variant,
                     key.threads, key.ranks);
}

struct Result : Comparison {
  int only_in_one_run = 0;
  std::int64_t count(Change change) const {
    return std::count_if(rows.begin(), rows.end(),
                         [&](const RowComparison& row) { return row.change == change; });
  }
  bool is_slower() const {
    return count(Change::slower) > 0 ||
           std::any_of(rungs.begin(), rungs.end(),
                       [](const RungComparison& rung) { return rung.change == Change::slower; });
  }
};

std::string text_of(const Judgement& judgement) {
  return fmt::format("{:>7.3f}  {:>6.3f} .. {:<6.3f} {:>6.3f}  {}", judgement.ratio, judgement.low,
                     judgement.high, judgement.p,
                     judgement.change == Change::slower ? "SLOWER" : name_of(judgement.change));
}

using Json = nlohmann::ordered_json;

Json with(Json row, const Judgement& judgement) {
  row.update({{"ratio", judgement.ratio},
              {"ratio_low", judgement.low},
              {"ratio_high", judgement.high},
              {"p", judgement.p},
              {"verdict", name_of(judgement.change)},
              {"reason", judgement.reason}});
  return row;
}

void print_table(const Result& result, const Options& options) {
  fmt::print("{:<74} {:>10} {:>10} {:>7}  {:<16} {:>6}\n", "row", "old s", "new s", "ratio",
             "interval", "p");
  for (const RowComparison& row : result.rows)
    fmt::print("{:<74} {:>10.4g} {:>10.4g} {}\n", text_of(row.key), row.before_seconds,
               row.after_seconds, text_of(static_cast<const Judgement&>(row)));
  if (!result.rungs.empty())
    fmt::print("\n{:<85} {:>10} {:>7}  {:<16} {:>6}\n", "rung over its problems", "problems",
               "ratio", "interval", "p");
  for (const RungComparison& rung : result.rungs)
    fmt::print("{:<85} {:>10} {}\n",
               fmt::format("{} {} t{} r{}", rung.key.primitive, rung.key.variant, rung.key.threads,
                           rung.key.ranks),
               rung.problems, text_of(static_cast<const Judgement&>(rung)));
  fmt::print(
      "\nratio: time in {} / time in {}, beside the other rows of the problem, which took turns "
      "with it.\nThe intervals hold for all rows, and for all rungs, together at {:g} %.\n"
      "{} slower, {} faster, {} the same within {:g} %, {} cannot be told, {} in one run only\n",
      options.after, options.before, 100 * (1 - options.significance), result.count(Change::slower),
      result.count(Change::faster), result.count(Change::same), options.threshold,
      result.count(Change::cannot_tell), result.only_in_one_run);
}

void print_json(const Result& result, const Options& options) {
  Json rows = Json::array();
  for (const RowComparison& row : result.rows)
    rows.push_back(with({{"primitive", row.key.primitive},
                         {"direction", row.key.direction},
                         {"problem", row.key.problem},
                         {"variant", row.key.variant},
                         {"threads", row.key.threads},
                         {"ranks", row.key.ranks},
                         {"old_s", row.before_seconds},
                         {"new_s", row.after_seconds}},
                        row));
  Json rungs = Json::array();
  for (const RungComparison& rung : result.rungs)
    rungs.push_back(with({{"primitive", rung.key.primitive},
                          {"variant", rung.key.variant},
                          {"threads", rung.key.threads},
                          {"ranks", rung.key.ranks},
                          {"problems", rung.problems}},
                         rung));
  const Json json = {{"schema_version", 2},
                     {"old", options.before},
                     {"new", options.after},
                     {"threshold_percent", options.threshold},
                     {"significance", options.significance},
                     {"rows", rows},
                     {"rungs", rungs},
                     {"totals",
                      {{"slower", result.count(Change::slower)},
                       {"faster", result.count(Change::faster)},
                       {"same", result.count(Change::same)},
                       {"cannot_tell", result.count(Change::cannot_tell)},
                       {"in_one_run_only", result.only_in_one_run}}}};
  fmt::print("{}\n", json.dump(1, ' ', false, Json::error_handler_t::replace));
}

int run(const Options& options) {
  const Repetitions before = read_repetitions(options.before);
  const Repetitions after = read_repetitions(options.after);
  Result result{compare_runs(
      before, after, {.threshold = options.threshold / 100, .significance = options.significance})};
  const auto common = static_cast<int>(result.rows.size());
  result.only_in_one_run = static_cast<int>(before.size() + after.size()) - 2 * common;
  if (options.json)
    print_json(result, options);
  else
    print_table(result, options);
  if (common == 0)
    throw std::runtime_error(
        fmt::format("{} and {} have no row in common", options.before, options.after));
  return result.is_slower() ? 1 : 0;
}

}  // namespace

Command compare_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "compare", "Compare two runs; exit 1 on a slowdown, 2 when they cannot be compared");
  auto options = std::make_shared<Options>();
  app->add_option("old", options->before, "Folder of the earlier run")->required();
  app->add_option("new", options->after, "Folder of the later run")->required();
  app->add_option("--threshold", options->threshold, "Smallest change that matters, in percent")
      ->check(positive_number());
  app->add_option("--significance", options->significance,
                  "Probability of any false alarm in the whole comparison")
      ->check(number_between(1e-9, 0.5));
  app->add_flag("--json", options->json, "Print the result as JSON");
  return {app, [options] {
            try {
              const int status = run(*options);
              flush_output();
              return status;
            } catch (const std::exception& error) {  // 1 would look like a slowdown
              fmt::print(stderr, "stepladder: {}\n", error.what());
              return 2;
            }
          }};
}

}  // namespace stepladder
