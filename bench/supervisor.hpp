// A crash of a variant costs its row only: the supervisor runs the measurement in a child process,
// and starts another one that goes on when the child crashes, hangs, exits or takes too much
// memory.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "harness/results/problem_bench.hpp"

namespace stepladder {

struct Limits {
  double seconds = 60;  // of a call beyond what is expected of it
  double memory_bytes = 0;
};

// Calls `measure` in a child process and returns its exit status. After a crash it is called in
// another child with what was lost. Signals that end the run are passed on. A problem in which the
// child is lost twice between two subjects, as where its memory ends, is left out. Crashes outside
// the problems end the run after the third one.
int supervise(const Limits& limits, const std::function<int(const AfterCrash&)>& measure);

// Ranks cannot be restarted from within: when one is lost, the launcher ends them all. While this
// exists, the run folder holds a record of the work, which tells the next command what was lost.
class RecordOfRanks {
 public:
  // Collective. With `after_crash`, `lost()` has the variants that ended the former commands in
  // this folder. Throws std::runtime_error if none did.
  RecordOfRanks(const std::filesystem::path& run, bool after_crash);
  ~RecordOfRanks();  // removes the record
  RecordOfRanks(const RecordOfRanks&) = delete;
  RecordOfRanks& operator=(const RecordOfRanks&) = delete;

  const AfterCrash& lost() const { return lost_; }

 private:
  std::filesystem::path record_, crashes_;
  bool made_folder_ = false;
  AfterCrash lost_;
};

}  // namespace stepladder
