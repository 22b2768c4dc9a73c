#include "bench/attribution_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/row_table.hpp"
#include "harness/results/run_folder.hpp"

namespace stepladder {
namespace {

std::string interval(const Factor& factor) {
  return fmt::format("{} .. {}", factor_text(factor.low), factor_text(factor.high));
}

void print_table(const Attribution& found, std::span<const std::string> names) {
  fmt::print("  {:<10} {:>8} {:>8} {:>8}  {:<18} {:<34} {}\n", "technique", "alone", "last",
             "average", "95 % interval", "least, after", "most, after");
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Attribution::Technique& t = found.techniques[i];
    fmt::print("  {:<10} {:>8} {:>8} {:>8}  {:<18} {:<34} {}\n", names[i],
               factor_text(t.alone.value), factor_text(t.last.value), factor_text(t.average.value),
               interval(t.average),
               fmt::format("{} {}", factor_text(t.least.value), names_of(t.least_after, names)),
               fmt::format("{} {}", factor_text(t.most.value), names_of(t.most_after, names)));
  }
  fmt::print("  {:<10} {:>8} {:>8} {:>8}  {}\n", "all", "", "", factor_text(found.total.value),
             interval(found.total));
  if (found.fastest.value > found.total.value)
    fmt::print("  fastest: {} {} ({})\n", names_of(found.fastest_with, names),
               factor_text(found.fastest.value), interval(found.fastest));
  std::vector<Attribution::Pair> clear;
  for (const Attribution::Pair& pair : found.pairs)
    if (pair.together.low > 1 || pair.together.high < 1) clear.push_back(pair);
  std::sort(clear.begin(), clear.end(),
            [](const auto& a, const auto& b) { return a.together.value > b.together.value; });
  for (const Attribution::Pair& pair : clear)
    fmt::print("  {} and {} {}: {} ({})\n", names[static_cast<std::size_t>(pair.first)],
               names[static_cast<std::size_t>(pair.second)],
               pair.together.value > 1 ? "help each other" : "gain less together",
               factor_text(pair.together.value), interval(pair.together));
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
  rows.back().most = found.fastest, rows.back().most_after = names_of(found.fastest_with, names);
  return rows;
}

}  // namespace

std::filesystem::path attribution_folder(const std::string& run) {
  return (run.empty() ? default_run_directory() : std::filesystem::path(run)) / "attribution";
}

void report_attribution(const std::filesystem::path& folder, const AttributionRow& problem,
                        std::span<const std::string> names, std::span<const CornerTime> corners,
                        double flops) {
  const Attribution found = attribute(corners);
  std::vector<std::vector<std::string>> lines;
  for (const AttributionRow& row : rows_of(found, names, problem))
    lines.push_back(attribution_columns().line(row));
  Table(folder / "attribution.csv", attribution_columns().names())
      .remove_rows(
          [&](const CsvRow& row) {
            return row.text("primitive") == problem.primitive &&
                   row.text("direction") == problem.direction &&
                   row.text("problem") == problem.problem;
          },
          lines);
  const auto speed = [&](const CornerTime& time) {
    return flops > 0 ? fmt::format("{:.3g} GFLOP/s", flops / time.seconds / 1e9)
                     : time_text(time.seconds);
  };
  fmt::print("\n{}{}{} {}, {}, {} {}: {} without, {} with all techniques\n", problem.primitive,
             problem.direction.empty() ? "" : " ", problem.direction, problem.problem,
             problem.shape, problem.threads, problem.threads > 1 ? "threads" : "thread",
             speed(corners.front()), speed(corners.back()));
  print_table(found, names);
}

}  // namespace stepladder
