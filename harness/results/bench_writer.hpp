// Writes the rows of `bench` to summary.csv and samples.csv. A row that is written again replaces
// the former one: it waits in summary.later.csv until settle(), so that no file is read and written
// between two measurements. In a resumed run, rows that were measured before stay and all others
// are replaced.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/results/bench_row.hpp"
#include "harness/results/run_folder.hpp"

namespace stepladder {

class BenchWriter {
 public:
  explicit BenchWriter(const RunFolder& folder);

  // Whether the resumed run has measured this row.
  bool has_measured(const BenchRow& row) const;
  // Writes the rows together, after their samples; that a row failed is written before its samples
  // go. A row that is in the file already is left out. The row of a variant without a problem is
  // removed when the variant can run now.
  void write(const std::vector<const BenchRow*>& rows);
  // Puts the rows that wait into summary.csv. A crash before it loses nothing: the next writer in
  // the folder does it.
  void settle();

 private:
  static std::filesystem::path later_file(const RunFolder& folder);
  void append_later(const std::vector<std::vector<std::string>>& rows);

  std::filesystem::path later_;
  Table summary_, samples_;
  std::unique_ptr<Table> waiting_;              // summary.later.csv, if it is there
  std::map<std::string, std::size_t> written_;  // samples in the file, by the key of the row here
  std::map<std::string, std::string> former_;   // status of the rows in the file, by key
};

}  // namespace stepladder
