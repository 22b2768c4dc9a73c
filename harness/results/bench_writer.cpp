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

// Of the row of the same variant without a problem, whose other columns are empty.
std::string key_without_problem(const CsvRow& row) {
  std::string key;
  for (const std::string& column : summary_key)
    key += (column == "primitive" || column == "variant" ? row.text(column) : "") + "|";
  return key;
}

std::string key_of(const BenchRow& row, const std::vector<std::string>& columns) {
  const std::vector<std::string> fields = summary_columns().line(row);
  std::string key;
  for (const std::string& column : columns) key += fields[summary_columns().index_of(column)] + "|";
  return key;
}

}  // namespace

std::filesystem::path BenchWriter::later_file(const RunFolder& folder) {
  return folder.directory() / "summary.later.csv";
}

BenchWriter::BenchWriter(const RunFolder& folder)
    : later_(later_file(folder)),
      summary_(folder.table(summary_columns())),
      samples_(folder.table(samples_columns())) {
  if (!folder.resumed()) return;
  settle();
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
  std::vector<std::vector<std::string>> summary, later, failed_later, samples;
  std::set<std::string> replaced_samples;
  for (const BenchRow* row : rows) {
    const std::string key = key_of(*row, summary_key);
    const auto former = former_.find(key);
    bool replaces = former != former_.end();
    if (replaces && former->second == row->status && row->status != "failed" && !row->is_ok())
      continue;
    std::size_t& written = written_[key];
    // Samples of a row that failed now do not count, nor do those of another process.
    if (replaces && former->second == "ok" && (written == 0 || !row->is_ok())) {
      replaced_samples.insert(key_of(*row, samples_key));
      written = 0;
    }
    if (row->problem != nullptr)
      if (former_.erase(key_of(BenchRow{.variant = row->variant}, summary_key)) > 0)
        replaces = true;
    former_[key] = row->status;
    (!replaces      ? summary
     : row->is_ok() ? later
                    : failed_later)
        .push_back(summary_columns().line(*row));
    if (!row->is_ok()) continue;
    const std::vector<Sample>& all = row->measured.samples;
    for (; written < all.size(); ++written)
      samples.push_back(samples_columns().line({*row, all[written]}));
  }
  append_later(failed_later);  // before its samples go: a crash must not leave it ok without any
  if (replaced_samples.empty())
    samples_.append(samples);
  else
    samples_.remove_rows(
        [&](const CsvRow& row) { return replaced_samples.contains(key_of(row, samples_key)); },
        samples);
  summary_.append(summary);
  append_later(later);
}

void BenchWriter::append_later(const std::vector<std::vector<std::string>>& rows) {
  if (rows.empty()) return;
  if (waiting_ == nullptr) waiting_ = std::make_unique<Table>(later_, summary_columns().names());
  waiting_->append(rows);
}

// The last row of each key counts. A row of a variant with a problem replaces the one without.
void BenchWriter::settle() {
  std::error_code error;
  if (!std::filesystem::exists(later_, error)) return;
  waiting_ = std::make_unique<Table>(later_, summary_columns().names());  // without a torn line
  const CsvFile waiting(later_, summary_columns().names());
  std::map<std::string, const CsvRow*> last;
  std::set<std::string> replaced;
  for (const CsvRow& row : waiting.rows()) {
    last[key_of(row, summary_key)] = &row;
    replaced.insert(key_without_problem(row));
  }
  std::vector<std::vector<std::string>> lines;
  for (const CsvRow& row : waiting.rows()) {
    if (last.at(key_of(row, summary_key)) != &row) continue;
    std::vector<std::string> fields;
    for (const std::string& column : summary_columns().names()) fields.push_back(row.text(column));
    lines.push_back(std::move(fields));
  }
  summary_.remove_rows(
      [&](const CsvRow& row) {
        const std::string key = key_of(row, summary_key);
        return last.contains(key) || replaced.contains(key);
      },
      lines);
  waiting_.reset();
  std::filesystem::remove(later_);
}

}  // namespace stepladder
