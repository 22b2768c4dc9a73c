// Writes the rows of `bench` to summary.csv and samples.csv. A row that is written again replaces the
// former one. In a resumed run, rows that were measured before stay and all others are replaced.
#pragma once

#include <map>
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
  // Writes the rows together, samples first. A row that is in the file already is left out. The row
  // of a variant without a problem is removed when the variant can run now.
  void write(const std::vector<const BenchRow*>& rows);

 private:
  Table summary_, samples_;
  std::map<std::string, std::string> former_;  // status of the rows in the file, by key
};

}  // namespace stepladder
