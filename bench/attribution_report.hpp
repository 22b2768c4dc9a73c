// The attribution of one problem: its table, and its rows of attribution.csv.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "harness/results/attribution.hpp"
#include "harness/results/result_columns.hpp"

namespace stepladder {

// RUN/attribution, of a new run if `run` is empty.
std::filesystem::path attribution_folder(const std::string& run);

// Prints the table, and replaces the rows of the problem in folder/attribution.csv. `problem` has
// the columns that name it; corners: the times of all combinations of `names`, as attribute()
// expects them; flops: of the problem, 0 if unknown.
void report_attribution(const std::filesystem::path& folder, const AttributionRow& problem,
                        std::span<const std::string> names, std::span<const CornerTime> corners,
                        double flops);

}  // namespace stepladder
