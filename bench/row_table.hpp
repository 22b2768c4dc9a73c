// Rows of summary.csv as tables for the terminal.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/selection.hpp"

namespace stepladder {

// A row that has a problem. Empty values: not measured, or not for this row.
struct TableRow {
  std::string primitive, direction, problem, shape, variant, status, reason;
  bool is_library = false, is_disturbed = false;
  int threads = 1, ranks = 1;
  std::optional<double> seconds, low, high, gflops, gbytes, over_first, over_compiler, over_library,
      percent_of_roof;
};

// The rows of these problems and variants, in the order of the file, which is that of the ladder.
std::vector<TableRow> read_rows(const std::filesystem::path& summary,
                                const std::vector<Work>& work);

// Up to a few problems: a table each, with bars on a terminal; more: geometric means. Then failed
// rows, and how many rows are unavailable for which reason.
void print_tables(const std::vector<TableRow>& rows);

std::string time_text(double seconds);   // "12.3 us"
std::string factor_text(double factor);  // "1.23x"

}  // namespace stepladder
