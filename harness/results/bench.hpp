// Proves and times variants over problems, and writes what came out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/problem/primitives.hpp"
#include "harness/results/run.hpp"

namespace stepladder {

struct BenchOptions {
  std::vector<int> threads = {1};
  MeasureOptions measure;
  bool cold = false;
  bool again = false;  // rows that the resumed run holds are measured anew and replaced
  std::uint64_t seed = 1;
  std::string suite_argument;  // "--suite layers" or "--suite-file f.csv", for the repeat command
};

struct BenchCounts {
  int ok = 0, failed = 0, unavailable = 0, skipped = 0, flagged = 0,
      kept = 0;  // kept: of the resumed run
};

class Bench {
 public:
  Bench(Run& run, BenchOptions options);
  ~Bench();

  // All variants at all thread counts on one problem, interleaved; the rows are written together.
  // Throws Interrupted; and DeviceLost, after it has written which rows that cost.
  void measure(Case& problem, const std::vector<Variant>& variants);
  const BenchCounts& counts() const { return counts_; }

 private:
  struct Row;
  struct Tables;
  std::vector<Row> plan_rows(const Case& problem, const std::vector<Variant>& variants) const;
  void allocate_and_time(Case& problem, Place place, std::size_t copies, std::vector<Row*>& rows);
  void prove(Case& problem, std::vector<Row*>& rows);
  void prove(Case& problem, Row& row, Tier tier);
  bool skip_if_device_lost(std::vector<Row*>& rows, const std::string& after);
  void time(Case& problem, std::vector<Row*>& rows);
  void compare(std::vector<Row>& rows) const;
  void write(const Case& problem, const std::vector<Row>& rows);
  bool fits_memory(const Case& problem, std::size_t copies, std::string& reason) const;
  std::vector<std::string> summary_row(const Case& problem, const Row& row) const;
  std::string key(const Case& problem, const Row& row) const;
  std::string samples_key(const Case& problem, const Row& row) const;

  Run& run_;
  BenchOptions options_;
  BenchCounts counts_;
  std::string device_lost_after_;  // the row that broke it; empty when none did
  std::unique_ptr<Tables> tables_;
};

}  // namespace stepladder
