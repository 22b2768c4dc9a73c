// Verifies and times variants on problems.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/problem/case.hpp"
#include "harness/results/bench_row.hpp"
#include "harness/results/run.hpp"
#include "harness/verify/cheats.hpp"
#include "harness/verify/verify.hpp"

namespace stepladder {

class BenchWriter;

// What a measuring process that was lost leaves to the next one in the same run folder.
struct AfterCrash {
  struct Crash {
    std::string subject;  // "primitive/direction/problem/variant/threads:N"
    std::string reason;
  };
  int restarts = 0;
  std::vector<Crash> crashed;
  std::vector<Crash>
      lost;  // problems, "primitive/direction/problem", in which no variant was to blame
  std::int64_t finished_problems = 0;  // which are left alone, apart from crashed rows
  std::string suspect;                 // a subject whose problem the new process only examines
};

struct BenchOptions {
  std::vector<int> threads = {1};
  MeasureOptions measure{};
  bool cold = false;
  bool again = false;  // measure the rows that the resumed run has, and replace them
  std::uint64_t seed = 1;
  AfterCrash after_crash{};
  // "--suite-file f.csv", for the repeat command; empty: --suite and the suite of the row
  std::string problems_argument{};
  std::string plugins{};  // their options, for the repeat command
};

struct BenchCounts {
  int ok = 0, failed = 0, unavailable = 0, skipped = 0;
  int flagged = 0;    // ok, but noisy
  int disturbed = 0;  // ok, but something slowed the machine
  int kept = 0;       // measured by the run that was resumed
};

class ProblemBench {
 public:
  ProblemBench(Run& run, BenchOptions options);
  ~ProblemBench();

  // The first visit to a problem: measures all variants at all thread counts, in turns, and writes
  // their rows together. It uses about half of the repetitions and of the budget. A variant that
  // can run no problem here gets one row in the whole run. Throws Interrupted; and DeviceLost,
  // after the rows that it cost are written. Both must outlive the ProblemBench.
  void measure(Case& problem, const std::vector<Variant>& variants);
  // Uses the time that first visits left: visits every problem again, with new operands and new
  // plans, then those with disturbed rows and those whose rows disagree most between repetitions or
  // visits. Replaces their rows. Calls `advance` with the problem and the share of that time that
  // is left.
  void measure_again(const std::function<void(const Case&, double)>& advance);
  // After a crash: runs each variant in a process of its own, and sets the subject of the work
  // record to the first one that crashes there. Before anything is measured.
  void find_culprit(Case& problem, const std::vector<Variant>& variants);
  // Puts all rows into summary.csv; see BenchWriter. measure_again() ends with it, and so does the
  // ProblemBench.
  void settle();
  const BenchCounts& counts() const { return counts_; }

 private:
  // A row while it is measured.
  struct Candidate : BenchRow {
    std::unique_ptr<Runner> runner{};
    double estimate_seconds = 0;  // of one call
    bool runs_nowhere = false;    // on this machine
    double visit_seconds = 0;     // as timed in the present visit
    Check timed_results{.passed = true};
    // Of its time beside the other rows, relative to it, from repetitions and visits; infinite if
    // the row is disturbed.
    double standard_error = 0;
    std::string remarks;  // `reason` without those of its interval
    void add_remark(const std::string& remark) {
      reason += (reason.empty() || remark.empty() ? "" : "; ") + remark;
    }
  };
  using Candidates = std::vector<Candidate*>;
  // A problem and its rows.
  struct Visited {
    Case* problem;
    std::vector<Candidate> candidates;
    int visits = 1;
    void set_errors();
    double uncertainty() const;  // the largest standard error, slow rows left out
    bool is_timed() const;       // any of its rows
  };

  enum class Finished { left_out, included };
  std::vector<Candidate> plan(const Case& problem, const std::vector<Variant>& variants,
                              Finished finished = Finished::left_out);
  std::string repeat_command(const Candidate& candidate) const;
  bool is_cold(const Case& problem) const;
  const Links* links_of(const Case& problem);
  const AfterCrash::Crash* loss_of(const Candidate& candidate) const;
  const AfterCrash::Crash* crash_of(const Candidate& candidate) const;
  std::size_t copies_of(const Case& problem, bool on_device) const;
  double least_available_memory() const;
  std::string why_too_large(const Case& problem, std::size_t copies) const;
  std::size_t planned_together(const Case& problem, std::size_t copies) const;
  void visit(Visited& visited);
  void visit_again(Visited& visited);
  static bool is_long(const Candidate& candidate);  // a single call, as it was verified
  bool sits_out(const Candidate& candidate) const;  // the present visit
  void raise_beaten_ceilings();
  void allocate_and_time(Case& problem, bool on_device, const Candidates& candidates);
  void verify_all(Case& problem, const Candidates& candidates);
  void plan_all_again(Case& problem, const Candidates& candidates);
  void verify_one(Case& problem, Candidate& candidate, const char* when);
  Resources resources_of(const Case& problem, const Candidate& candidate);
  Filling filling_after_timing() const;  // of the present visit
  void verify_timed(Case& problem, const Candidates& candidates);
  void judge_timed(Case& problem, Candidate& candidate, double seconds);
  Subject subject_for(Case& problem, Candidate& candidate);
  bool skip_if_device_lost(const Candidates& candidates, const std::string& after);
  void time(Case& problem, const Candidates& all, int group);
  void set_times(const Case& problem, Candidate& candidate, Measured measured);
  void set_intervals(std::vector<Candidate>& candidates);
  void set_speedups(std::vector<Candidate>& candidates) const;
  void count(const std::vector<Candidate>& candidates, int sign);
  void write(std::vector<Candidate>& candidates);

  Run& run_;
  BenchOptions options_;
  BenchCounts counts_;
  std::vector<Visited> visited_;
  VisitDifferences differences_of_visits_;  // of all rows so far
  std::int64_t problems_ = 0;               // visited
  int visit_ = 0;                           // the number of the present one to its problem
  double saved_seconds_ = 0;                // of timing, by first visits
  std::string device_lost_after_;        // the variant that broke the device; empty when none did
  std::set<std::string> runs_nowhere_;   // "primitive variant" of those that have their row
  StartedThreads threads_;               // owners: subject_of()
  std::unique_ptr<BenchWriter> writer_;  // on rank 0
};

}  // namespace stepladder
