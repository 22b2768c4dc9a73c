// Verifies and times variants on problems.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/problem/case.hpp"
#include "harness/results/bench_row.hpp"
#include "harness/results/run.hpp"
#include "harness/verify/verify.hpp"

namespace stepladder {

class BenchWriter;

struct BenchOptions {
  std::vector<int> threads = {1};
  MeasureOptions measure{};
  bool cold = false;
  bool again = false;  // measure the rows that the resumed run has, and replace them
  std::uint64_t seed = 1;
  std::string suite_argument{};  // "--suite layers" or "--suite-file f.csv", for the repeat command
};

struct BenchCounts {
  int ok = 0, failed = 0, unavailable = 0, skipped = 0;
  int flagged = 0;    // ok, but noisy
  int disturbed = 0;  // ok, but something slowed the machine
  int kept = 0;       // measured by the run that was resumed
};

class Bench {
 public:
  Bench(Run& run, BenchOptions options);
  ~Bench();

  // Measures all variants at all thread counts on one problem, in turns, and writes their rows
  // together. A variant that can run no problem here gets one row in the whole run. Throws
  // Interrupted; and DeviceLost, after the rows that it cost are written. With `may_postpone` nothing
  // is written if a row is disturbed, and the result is false: measure the problem again later.
  bool measure(Case& problem, const std::vector<Variant>& variants, bool may_postpone = false);
  const BenchCounts& counts() const { return counts_; }

 private:
  // A row while it is measured.
  struct Candidate : BenchRow {
    std::unique_ptr<Runner> runner{};
    double estimate_seconds = 0;  // of one call
    bool runs_nowhere = false;    // on this machine
  };
  using Candidates = std::vector<Candidate*>;

  std::vector<Candidate> plan(const Case& problem, const std::vector<Variant>& variants);
  std::string repeat_command(const Candidate& candidate) const;
  bool is_cold(const Case& problem) const;
  const Links* links_of(const Case& problem);
  std::size_t copies_of(const Case& problem, Place place) const;
  double least_available_memory() const;
  std::string why_too_large(const Case& problem, std::size_t copies) const;
  std::size_t planned_together(const Case& problem, std::size_t copies) const;
  void allocate_and_time(Case& problem, Place place, const Candidates& candidates);
  void verify_all(Case& problem, const Candidates& candidates);
  void verify_one(Case& problem, Candidate& candidate, const char* when);
  void verify_timed(Case& problem, const Candidates& candidates);
  bool skip_if_device_lost(const Candidates& candidates, const std::string& after);
  void time(Case& problem, const Candidates& candidates, int first_round);
  void set_times(const Case& problem, Candidate& candidate, Measured measured);
  void set_speedups(std::vector<Candidate>& candidates) const;
  void count_and_write(std::vector<Candidate>& candidates);

  Run& run_;
  BenchOptions options_;
  BenchCounts counts_;
  std::string device_lost_after_;        // the variant that broke the device; empty when none did
  std::set<std::string> runs_nowhere_;   // "primitive variant" of those that have their row
  std::unique_ptr<BenchWriter> writer_;  // on rank 0
};

}  // namespace stepladder
