// stepladder compare: compares two runs row by row.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "bench/commands.hpp"
#include "bench/option_checks.hpp"
#include "harness/io/file.hpp"
#include "harness/io/json_text.hpp"
#include "harness/results/comparison.hpp"

namespace stepladder {
namespace {

struct CompareOptions {
  std::string before, after;
  double threshold = 5, significance = 0.05;
  bool json = false, paired = false;
};

std::string text_of(const RowKey& key) {
  return fmt::format("{} {} {} {} t{} r{}", key.primitive, key.direction, key.problem, key.variant,
                     key.threads, key.ranks);
}

// A row of one run only, or one that failed.
struct Lost {
  RowKey key;
  std::string reason{};
};

struct Result : Comparison {
  std::vector<RowKey> only_before{}, only_after{};
  std::vector<Lost> failed{};  // after, and not before
  std::int64_t count(Change change) const {
    return std::count_if(rows.begin(), rows.end(),
                         [&](const RowComparison& row) { return row.change == change; });
  }
  std::size_t in_one_run_only() const { return only_before.size() + only_after.size(); }
  bool is_worse() const {
    return !failed.empty() || count(Change::slower) > 0 ||
           std::any_of(rungs.begin(), rungs.end(),
                       [](const RungComparison& rung) { return rung.change == Change::slower; });
  }
};

std::string text_of(const Judgement& judgement) {
  const std::string verdict =
      judgement.change == Change::slower ? "SLOWER" : name_of(judgement.change);
  const std::string reason = judgement.reason.empty() ? "" : ": " + judgement.reason;
  if (!judgement.judged)
    return fmt::format("{:>7}  {:<16} {:>6}  {}{}", "-", "-", "-", verdict, reason);
  return fmt::format("{:>7.3f}  {:>6.3f} .. {:<6.3f} {:>6.3f}  {}{}", judgement.ratio,
                     judgement.low, judgement.high, judgement.p, verdict, reason);
}

using Json = nlohmann::ordered_json;

Json json_of(const RowKey& key) {
  return {{"primitive", key.primitive}, {"direction", key.direction}, {"problem", key.problem},
          {"variant", key.variant},     {"threads", key.threads},     {"ranks", key.ranks}};
}

Json with(Json row, const Judgement& judgement) {
  const auto number = [&](double value) { return judgement.judged ? Json(value) : Json(nullptr); };
  row.update({{"ratio", number(judgement.ratio)},
              {"ratio_low", number(judgement.low)},
              {"ratio_high", number(judgement.high)},
              {"p", number(judgement.p)},
              {"verdict", name_of(judgement.change)},
              {"reason", judgement.reason}});
  return row;
}

// What `other` has none of is named once, as a rung or a problem; its other rows one by one.
void print_missing(const std::vector<RowKey>& missing, const Repetitions& other,
                   const std::string& run) {
  std::set<std::string> rungs, problems;
  const auto rung_of = [](const RowKey& key) { return key.primitive + " rung " + key.variant; };
  const auto problem_of = [](const RowKey& key) {
    return fmt::format("{} problem {} {}", key.primitive, key.direction, key.problem);
  };
  for (const auto& [key, repetitions] : other) {
    rungs.insert(rung_of(key));
    problems.insert(problem_of(key));
  }
  std::map<std::string, int> rows;
  for (const RowKey& key : missing)
    ++rows[!rungs.contains(rung_of(key))         ? rung_of(key)
           : !problems.contains(problem_of(key)) ? problem_of(key)
                                                 : text_of(key)];
  for (const auto& [name, count] : rows)
    fmt::print("only in {}: {}{}\n", run, name, count > 1 ? fmt::format(", {} rows", count) : "");
}

void print_table(const Result& result, const Repetitions& before, const Repetitions& after,
                 const CompareOptions& options) {
  fmt::print("{:<74} {:>10} {:>10} {:>7}  {:<16} {:>6}\n", "row", "old s", "new s", "ratio",
             "interval", "p");
  const auto time = [](double seconds) {
    return seconds > 0 ? fmt::format("{:.4g}", seconds) : std::string("-");
  };
  for (const RowComparison& row : result.rows)
    fmt::print("{:<74} {:>10} {:>10} {}\n", text_of(row.key), time(row.before_seconds),
               time(row.after_seconds), text_of(static_cast<const Judgement&>(row)));
  if (!result.rungs.empty())
    fmt::print("\n{:<85} {:>10} {:>7}  {:<16} {:>6}\n", "rung over its problems", "problems",
               "ratio", "interval", "p");
  for (const RungComparison& rung : result.rungs)
    fmt::print("{:<85} {:>10} {}\n",
               fmt::format("{} {} t{} r{}", rung.key.primitive, rung.key.variant, rung.key.threads,
                           rung.key.ranks),
               rung.problems, text_of(static_cast<const Judgement&>(rung)));
  if (result.in_one_run_only() > 0) fmt::print("\n");
  print_missing(result.only_before, after, options.before);
  print_missing(result.only_after, before, options.after);
  for (const Lost& row : result.failed)
    fmt::print("FAILED in {}: {}: {}\n", options.after, text_of(row.key), row.reason);
  fmt::print(
      "\nratio: time in {} / time in {}, {}.\n"
      "The intervals hold for all rows{} all rungs, together at {:g} %; `same` needs its own "
      "90 % interval within {:g} %.\n"
      "{} slower, {} faster, {} the same within {:g} %, {} cannot be told, {} in one run only{}\n",
      options.after, options.before,
      options.paired ? "pair by pair of processes that ran one after the other"
                     : "beside the other rows of the problem, which took turns with it",
      options.paired ? " and" : ", and for", 100 * (1 - options.significance), options.threshold,
      result.count(Change::slower), result.count(Change::faster), result.count(Change::same),
      options.threshold, result.count(Change::cannot_tell), result.in_one_run_only(),
      result.failed.empty() ? "" : fmt::format(", {} FAILED", result.failed.size()));
}

void print_json(const Result& result, const CompareOptions& options) {
  Json rows = Json::array();
  for (const RowComparison& row : result.rows) {
    Json line = json_of(row.key);
    line.update({{"old_s", row.before_seconds}, {"new_s", row.after_seconds}});
    rows.push_back(with(std::move(line), row));
  }
  Json rungs = Json::array();
  for (const RungComparison& rung : result.rungs)
    rungs.push_back(with({{"primitive", rung.key.primitive},
                          {"variant", rung.key.variant},
                          {"threads", rung.key.threads},
                          {"ranks", rung.key.ranks},
                          {"problems", rung.problems}},
                         rung));
  Json only_before = Json::array(), only_after = Json::array(), failed = Json::array();
  for (const RowKey& key : result.only_before) only_before.push_back(json_of(key));
  for (const RowKey& key : result.only_after) only_after.push_back(json_of(key));
  for (const Lost& row : result.failed) {
    failed.push_back(json_of(row.key));
    failed.back()["reason"] = row.reason;
  }
  const Json json = {{"schema_version", 2},
                     {"old", options.before},
                     {"new", options.after},
                     {"threshold_percent", options.threshold},
                     {"significance", options.significance},
                     {"rows", rows},
                     {"rungs", rungs},
                     {"only_in_old", only_before},
                     {"only_in_new", only_after},
                     {"failed", failed},
                     {"totals",
                      {{"slower", result.count(Change::slower)},
                       {"faster", result.count(Change::faster)},
                       {"same", result.count(Change::same)},
                       {"cannot_tell", result.count(Change::cannot_tell)},
                       {"in_one_run_only", result.in_one_run_only()},
                       {"failed", result.failed.size()}}}};
  fmt::print("{}\n", json_text(json, 1));
}

std::vector<RowKey> missing_in(const Repetitions& other, const Repetitions& run) {
  std::vector<RowKey> missing;
  for (const auto& [key, repetitions] : run)
    if (!other.contains(key)) missing.push_back(key);
  return missing;
}

int run(const CompareOptions& options) {
  const Repetitions before = read_repetitions(options.before);
  const Repetitions after = read_repetitions(options.after);
  const ComparisonOptions how{.threshold = options.threshold / 100,
                              .significance = options.significance};
  Result result{options.paired ? compare_pairs(before, after, how)
                               : compare_runs(before, after, how)};
  result.only_before = missing_in(after, before);
  result.only_after = missing_in(before, after);
  const std::map<RowKey, std::string> failed_before = read_failed(options.before);
  for (const auto& [key, reason] : read_failed(options.after))
    if (!failed_before.contains(key)) result.failed.push_back({key, reason});
  if (options.json)
    print_json(result, options);
  else
    print_table(result, before, after, options);
  if (result.rows.empty() && result.failed.empty())
    throw std::runtime_error(
        fmt::format("{} and {} have no row in common", options.before, options.after));
  return result.is_worse() ? 1 : 0;
}

}  // namespace

Command compare_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand("compare",
                                         "Compare two runs; exit 1 on a slowdown or a row that "
                                         "fails now, 2 when they cannot be compared");
  auto options = std::make_shared<CompareOptions>();
  app->add_option("old", options->before, "Folder of the earlier run")->required();
  app->add_option("new", options->after, "Folder of the later run")->required();
  app->add_option("--threshold", options->threshold, "Smallest change that matters, in percent")
      ->check(positive_number());
  app->add_option("--significance", options->significance,
                  "Probability of any false alarm in the whole comparison")
      ->check(number_between(1e-9, 0.5));
  app->add_flag("--paired", options->paired,
                "Visits of the same number are pairs: two programs that ran in turns, see make ab");
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
