// The folder in which one run writes its results.
#pragma once

#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/results/columns.hpp"
#include "harness/results/table.hpp"

namespace stepladder {

class RunFolder {
 public:
  // Makes the folder, or continues the run in it with `resume`. Throws std::runtime_error when it
  // holds a run and resume is false, when it or a table in it cannot be written, when a table has
  // other columns, or when less than 64 MiB are free.
  RunFolder(std::filesystem::path directory, bool resume);
  // When an exception ends a new run that has no row yet, removes what it wrote: the command, once
  // corrected, finds the folder as it was.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& directory() const { return directory_; }
  bool resumed() const { return resumed_; }

  // Replaces a file; a crash leaves the old content or the new.
  void write_text(const std::string& name, const std::string& text) const;
  void write_json(const std::string& name, const nlohmann::json& content) const;
  // Null when there is no such file, or it is damaged.
  nlohmann::json read_json(const std::string& name) const;

  bool has(const Columns& columns) const;  // NAME.csv
  // Opens NAME.csv for appending.
  Table table(const Columns& columns) const;
  // NAME.csv, which must be there.
  CsvFile read(const Columns& columns) const;

 private:
  std::filesystem::path file_of(const Columns& columns) const;

  std::filesystem::path directory_;
  int exceptions_ = std::uncaught_exceptions();
  bool resumed_ = false, made_ = false;
};

// results/local/<UTC time> of the project.
std::filesystem::path default_run_directory();
std::string utc_time();  // "2026-01-31T12:00:00Z"

}  // namespace stepladder
