// A run on disk: a folder that grows row by row, so that a crash loses nothing that was finished.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/io/csv.hpp"

namespace stepladder {

extern const std::vector<std::string> summary_columns;
extern const std::vector<std::string> samples_columns;
extern const std::vector<std::string> step_columns;
extern const std::vector<std::string> train_columns;

std::string number(double value);  // six significant digits; empty for NaN, infinities and 0 / 0

// One CSV file of a run. Rows are appended whole; a last line torn by a crash is cut off on opening.
class Table {
 public:
  // Throws std::runtime_error when the file cannot be written or has other columns; it is then left alone.
  Table(std::filesystem::path file, const std::vector<std::string>& columns);
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  // `rows` are written together. Throws std::runtime_error when they cannot be (disk full …), and leaves
  // the file as it was.
  void append(const std::vector<std::vector<std::string>>& rows);
  // Takes out the rows for which `unwanted` is true. A crash leaves the old content or the new.
  void remove_rows(const std::function<bool(const CsvRow&)>& unwanted);

 private:
  void open_file();

  std::filesystem::path file_;
  std::vector<std::string> columns_;
  int descriptor_ = -1;
};

class RunFolder {
 public:
  // Makes the folder, or continues one with `resume`. Throws std::runtime_error when it holds a run
  // already and resume is false, when it or a table in it cannot be written, when a table has other
  // columns, or when less than 64 MiB are free.
  RunFolder(std::filesystem::path directory, bool resume);

  const std::filesystem::path& directory() const { return directory_; }
  bool resumed() const { return resumed_; }

  // Replaces a JSON file whole: written beside it, flushed, renamed.
  void write_json(const std::string& name, const nlohmann::json& content) const;
  nlohmann::json read_json(
      const std::string& name) const;  // null when there is none or it is broken
  // Opens <name>.csv for appending.
  Table table(const std::string& name, const std::vector<std::string>& columns) const;

 private:
  std::filesystem::path directory_;
  bool resumed_ = false;
};

// results/local/<UTC time> of the project.
std::filesystem::path default_run_directory();
std::string utc_time();  // "2026-01-31T12:00:00Z"

}  // namespace stepladder
