#include "harness/results/bench_writer.hpp"

#include <set>

#include "harness/results/result_columns.hpp"

namespace stepladder {
namespace {

// They tell the rows of summary.csv apart.
const std::vector<std::string> summary_key = {"primitive", "direction", "suite", "problem",
                                              "variant",   "threads",   "ranks", "cache"};
// The same for samples.csv, which has no suite and no cache.
const std::vector<std::string> samples_key = {"primitive", "direction", "problem",
                                              "variant",   "threads",   "ranks"};

std::string key_of(const CsvRow& row, const std::vector<std::string>& columns) {
  std::string key;
  for (const std::string& column : columns) key += row.text(column) + "|";
  return key;
}

std::string key_of(const BenchRow& row, const std::vector<std::string>& columns) {
  const std::vector<std::string> fields = summary_columns().line(row);
  std::string key;
  for (const std::string& column : columns) key += fields[summary_columns().index_of(column)] + "|";
  return key;
}

}  // namespace

BenchWriter::BenchWriter(const RunFolder& folder)
    : summary_(folder.table(summary_columns())), samples_(folder.table(samples_columns())) {
  if (!folder.resumed()) return;
  const CsvFile before = folder.read(summary_columns());
  std::set<std::string> timed;
  for (const CsvRow& row : before.rows()) {
    former_[key_of(row, summary_key)] = row.text("status");
    if (row.text("status") == "ok") timed.insert(key_of(row, samples_key));
  }
  // A crash may have come between the samples of a problem and its rows.
  samples_.remove_rows(
      [&](const CsvRow& row) { return !timed.contains(key_of(row, samples_key)); });
}

bool BenchWriter::has_measured(const BenchRow& row) const {
  const auto former = former_.find(key_of(row, summary_key));
  return former != former_.end() && former->second == "ok";
}

void BenchWriter::write(const std::vector<const BenchRow*>& rows) {
  std::vector<std::vector<std::string>> summary, samples;
  std::set<std::string> replaced, replaced_samples;
  for (const BenchRow* row : rows) {
    const std::string key = key_of(*row, summary_key);
    if (const auto former = former_.find(key); former != former_.end()) {
      const bool repeats = former->second == row->status && row->status != "failed";
      if (repeats && !row->is_ok()) continue;
      replaced.insert(key);
      if (former->second == "ok") replaced_samples.insert(key_of(*row, samples_key));
    }
    if (row->problem != nullptr) {
      const std::string without_problem = key_of(BenchRow{.variant = row->variant}, summary_key);
      if (former_.erase(without_problem) > 0) replaced.insert(without_problem);
    }
    former_[key] = row->status;
    summary.push_back(summary_columns().line(*row));
    if (!row->is_ok()) continue;
    for (const Sample& sample : row->measured.samples)
      samples.push_back(samples_columns().line({*row, sample}));
  }
  if (replaced_samples.empty())
    samples_.append(samples);
  else
    samples_.remove_rows(
        [&](const CsvRow& row) { return replaced_samples.contains(key_of(row, samples_key)); },
        samples);
  if (replaced.empty())
    summary_.append(summary);
  else
    summary_.remove_rows(
        [&](const CsvRow& row) { return replaced.contains(key_of(row, summary_key)); }, summary);
}

}  // namespace stepladder
