#include "bench/row_table.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "harness/io/counted.hpp"
#include "harness/io/csv.hpp"
#include "harness/io/number.hpp"
#include "harness/results/result_columns.hpp"

namespace stepladder {
namespace {

constexpr std::size_t most_tables = 4;
constexpr std::size_t most_failed = 5;  // rows
constexpr std::size_t bar_width = 24;

using Rows = std::vector<const TableRow*>;

// Left-aligned first and last two columns, the others to the right; a column without any value is
// left out.
void print_columns(const std::vector<std::vector<std::string>>& lines) {
  std::vector<std::size_t> widths(lines.front().size(), 0);
  for (std::size_t c = 0; c < widths.size(); ++c) {
    bool is_used = false;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      widths[c] = std::max(widths[c], lines[i][c].size());
      is_used = is_used || (i > 0 && !lines[i][c].empty() && lines[i][c] != "-");
    }
    if (!is_used) widths[c] = 0;
  }
  for (const auto& line : lines) {
    std::string text;
    for (std::size_t c = 0; c < widths.size(); ++c)
      if (widths[c] > 0)
        text += c == 0 || c + 2 >= widths.size()  // the last are marks and bars
                    ? fmt::format("  {:<{}}", line[c], widths[c])
                    : fmt::format("  {:>{}}", line[c], widths[c]);
    fmt::print("{}\n", text.substr(0, text.find_last_not_of(' ') + 1));
  }
}

std::string text_of(const std::optional<double>& factor) {
  return factor ? factor_text(*factor) : "-";
}

std::string bar(double share) {
  static const char* const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto units = static_cast<std::size_t>(std::lround(share * 8.0 * bar_width));
  std::string text;
  for (std::size_t i = 0; i < units / 8; ++i) text += "█";
  return text + eighths[units % 8];
}

std::string marks(const TableRow& row) {
  std::string text = row.is_disturbed ? "disturbed" : "";
  for (const char* word : {"noisy", "beyond its roof"})
    if (row.reason.find(word) != std::string::npos)
      text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

// The rows of one problem.
void print_problem(const Rows& rows) {
  const TableRow& first = *rows.front();
  fmt::print("\n{} {} {}{}\n", first.primitive, first.direction, first.problem,
             first.shape.starts_with(first.problem) ? "" : ": " + first.shape);
  double fastest = 0;
  bool has_flops = false;
  for (const TableRow* row : rows) {
    if (row->seconds) fastest = std::max(fastest, 1 / *row->seconds);
    has_flops = has_flops || row->gflops.value_or(0) > 0;
  }
  const bool has_ranks = first.ranks > 1;
  std::vector<std::vector<std::string>> lines = {
      {"variant", has_ranks ? "ranks" : "threads", "median", "95 % interval",
       has_flops ? "GFLOP/s" : "GB/s", "over first", "over compiler", "over library", "of roof", "",
       ""}};
  for (const TableRow* row : rows) {
    if (!row->seconds) continue;
    const std::optional<double>& rate = has_flops ? row->gflops : row->gbytes;
    lines.push_back({row->variant, std::to_string(has_ranks ? row->ranks : row->threads),
                     time_text(*row->seconds),
                     row->low && row->high
                         ? fmt::format("{} .. {}", time_text(*row->low), time_text(*row->high))
                         : "",
                     rate ? fmt::format("{:.3g}", *rate) : "", text_of(row->over_first),
                     text_of(row->over_compiler), text_of(row->over_library),
                     row->percent_of_roof ? fmt::format("{:.0f} %", *row->percent_of_roof) : "",
                     marks(*row),
                     isatty(STDOUT_FILENO) != 0 ? bar(1 / *row->seconds / fastest) : ""});
  }
  if (lines.size() > 1) print_columns(lines);
}

std::optional<double> geometric_mean(const Rows& rows, std::optional<double> TableRow::*value) {
  double sum = 0;
  int count = 0;
  for (const TableRow* row : rows)
    if (row->*value && *(row->*value) > 0) sum += std::log(*(row->*value)), ++count;
  return count > 0 ? std::optional(std::exp(sum / count)) : std::nullopt;
}

// Each variant of a primitive, over its problems.
void print_means(const Rows& rows) {
  fmt::print("\n{}, geometric means over the problems\n", rows.front()->primitive);
  std::vector<std::pair<std::string, int>> order;
  std::map<std::pair<std::string, int>, Rows> of_variant;
  const bool has_ranks = rows.front()->ranks > 1;
  for (const TableRow* row : rows) {
    if (!row->seconds) continue;
    const std::pair<std::string, int> key{row->variant, has_ranks ? row->ranks : row->threads};
    if (!of_variant.contains(key)) order.push_back(key);
    of_variant[key].push_back(row);
  }
  std::vector<std::vector<std::string>> lines = {{"variant", has_ranks ? "ranks" : "threads",
                                                  "problems", "over first", "over compiler",
                                                  "over library", "of roof", "", ""}};
  for (const auto& key : order) {
    const Rows& own = of_variant[key];
    const auto roof = geometric_mean(own, &TableRow::percent_of_roof);
    lines.push_back({key.first, std::to_string(key.second), std::to_string(own.size()),
                     text_of(geometric_mean(own, &TableRow::over_first)),
                     text_of(geometric_mean(own, &TableRow::over_compiler)),
                     text_of(geometric_mean(own, &TableRow::over_library)),
                     roof ? fmt::format("{:.0f} %", *roof) : "", "", ""});
  }
  if (lines.size() > 1) print_columns(lines);
}

// What the tables do not say by themselves.
void print_notes(const Rows& rows) {
  const auto any = [&](auto&& is_so) { return std::any_of(rows.begin(), rows.end(), is_so); };
  if (any([](const TableRow* row) { return row->over_first && *row->over_first != 1; }))
    fmt::print(
        "over: the median ratio of repetitions in turns; that of the medians may differ a "
        "little\n");
  if (any([](const TableRow* row) {
        return row->seconds && row->variant.find("_o3_") != row->variant.npos;
      }))
    fmt::print("_o3_: the loops of the rung of that name, vectorized by the compiler\n");
}

void print_without_times(const Rows& rows) {
  std::vector<std::pair<std::string, int>> reasons;
  std::size_t failed = 0;
  for (const TableRow* row : rows) {
    if (row->status == "failed" && ++failed <= most_failed)
      fmt::print("FAILED {} {} {} {}: {}\n", row->primitive, row->direction, row->variant,
                 row->problem, row->reason);
    if (row->status != "unavailable" && row->status != "skipped") continue;
    const std::string text = row->status + ": " + row->reason;
    const auto known = std::find_if(reasons.begin(), reasons.end(),
                                    [&](const auto& entry) { return entry.first == text; });
    if (known == reasons.end())
      reasons.emplace_back(text, 1);
    else
      ++known->second;
  }
  if (failed > most_failed)
    fmt::print("and {} more failed rows, in summary.csv\n", failed - most_failed);
  for (const auto& [reason, count] : reasons) fmt::print("{} {}\n", counted(count, "row"), reason);
}

}  // namespace

std::string time_text(double seconds) {
  return seconds < 1e-6   ? fmt::format("{:.3g} ns", 1e9 * seconds)
         : seconds < 1e-3 ? fmt::format("{:.3g} us", 1e6 * seconds)
         : seconds < 1    ? fmt::format("{:.3g} ms", 1e3 * seconds)
                          : fmt::format("{:.3g} s", seconds);
}

std::string factor_text(double factor) {
  return factor < 10 ? fmt::format("{:.2f}x", factor) : fmt::format("{:.3g}x", factor);
}

std::vector<TableRow> read_rows(const std::filesystem::path& summary,
                                const std::vector<Work>& work) {
  std::set<std::vector<std::string>> problems, variants;
  for (const Work& w : work) {
    for (const auto& problem : w.problems)
      problems.insert({problem->info().primitive, problem->info().direction, problem->info().name});
    for (const Variant& variant : w.variants) variants.insert({w.type->name(), variant.name});
  }
  const CsvFile file(summary, {"primitive", "direction", "problem", "variant", "status"},
                     summary_columns().names());
  std::vector<TableRow> rows;
  for (const CsvRow& row : file.rows()) {
    const auto value = [&](const char* column) -> std::optional<double> {
      return number_in<double>(row.text(column));
    };
    if (!variants.contains({row.text("primitive"), row.text("variant")})) continue;
    const bool has_problem = !row.text("problem").empty();
    if (has_problem &&
        !problems.contains({row.text("primitive"), row.text("direction"), row.text("problem")}))
      continue;
    rows.push_back({.primitive = row.text("primitive"),
                    .direction = row.text("direction"),
                    .problem = row.text("problem"),
                    .shape = row.text("shape"),
                    .variant = row.text("variant"),
                    .status = row.text("status"),
                    .reason = row.text("reason"),
                    .is_library = row.text("technique") == "vendor",
                    .is_disturbed = !row.text("marked").empty(),
                    .threads = static_cast<int>(value("threads").value_or(1)),
                    .ranks = static_cast<int>(value("ranks").value_or(1)),
                    .seconds = row.text("status") == "ok" ? value("median_s") : std::nullopt,
                    .low = value("ci_low_s"),
                    .high = value("ci_high_s"),
                    .gflops = value("gflops_per_s"),
                    .gbytes = value("gbytes_per_s"),
                    .over_first = value("speedup_vs_serial"),
                    .over_compiler = value("speedup_vs_compiler"),
                    .over_library = value("speedup_vs_vendor"),
                    .percent_of_roof = value("percent_of_roof")});
  }
  return rows;
}

void print_tables(const std::vector<TableRow>& rows) {
  std::vector<std::vector<std::string>> keys;
  std::map<std::vector<std::string>, Rows> of_problem;
  std::vector<std::string> primitives;
  std::map<std::string, Rows> of_primitive;
  Rows all;
  for (const TableRow& row : rows) {
    all.push_back(&row);
    if (row.problem.empty()) continue;
    std::vector<std::string> key{row.primitive, row.direction, row.problem};
    if (!of_problem.contains(key)) keys.push_back(key);
    of_problem[key].push_back(&row);
    if (!of_primitive.contains(row.primitive)) primitives.push_back(row.primitive);
    of_primitive[row.primitive].push_back(&row);
  }
  if (keys.size() <= most_tables)
    for (const auto& key : keys) print_problem(of_problem[key]);
  else
    for (const std::string& primitive : primitives) print_means(of_primitive[primitive]);
  fmt::print("\n");
  print_notes(all);
  print_without_times(all);
}

}  // namespace stepladder
