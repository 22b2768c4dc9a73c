// A CSV file of a run. It grows row by row, so that a crash loses no finished row.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "harness/io/csv.hpp"
#include "harness/io/result_file.hpp"

namespace stepladder {

class Table {
 public:
  // Removes a last line without newline, which a crash left. Throws std::runtime_error when the
  // file cannot be written, or has other columns and is left unchanged.
  Table(std::filesystem::path file, const std::vector<std::string>& columns);

  // Writes the rows together. When they cannot be written (disk full …), leaves the file unchanged
  // and throws std::runtime_error.
  void append(const std::vector<std::vector<std::string>>& rows);
  // Removes the rows for which `unwanted` is true and appends others. A crash leaves the old
  // content or the new.
  void remove_rows(const std::function<bool(const CsvRow&)>& unwanted,
                   const std::vector<std::vector<std::string>>& appended = {});

 private:
  std::string lines_of(const std::vector<std::vector<std::string>>& rows) const;

  std::filesystem::path path_;
  std::vector<std::string> columns_;
  AppendedFile file_;
};

}  // namespace stepladder
