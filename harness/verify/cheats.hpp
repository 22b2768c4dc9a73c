// Finds plans whose times are not those of their work: that are fast only on operands that they
// have just had, that work on after the call, or whose threads do.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

#include "harness/problem/case.hpp"

namespace stepladder {

inline constexpr int changed_elements = 16;  // of each input, so that most fingerprints change

// Runs a plan that was timed, on copy 0, on operands that are changed before each run. A run took
// `seconds` when `runs` in a row were timed. Empty, or what is wrong: results are missing when the
// call returns, or a run takes longer than one whose operands are those of the run before. Both
// kinds of runs take turns, and the fastest of each are compared, so that the decision does not
// depend on what else the machine does.
// For repeatable variants. With MPI all ranks call it together.
std::string fault_of_pace(Case& problem, const Variant& variant, Runner& runner, double seconds,
                          std::int64_t runs);

// Which rung started the threads of this process: a thread that goes on is no fault of the others.
class StartedThreads {
 public:
  StartedThreads();  // those that there are already belong to no rung
  // Threads that are new since the last call belong to `rung`, which has just run.
  void belong_to(const std::string& rung);
  // Empty, or that threads of `rung` go on although no call is under way: those of its OpenMP team
  // of so many threads, which may wait actively, do not count. Waits up to 2 s for them.
  std::string fault_of(const std::string& rung, int threads) const;

 private:
  std::map<pid_t, std::string> owners_;
};

}  // namespace stepladder
