// The ranks of this run. A program that mpirun did not start is one rank and need not start MPI; a
// program built without MPI can be nothing else. All calls have a meaning in both cases.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace stepladder {

class MpiSession {
 public:
  MpiSession();
  // Ends MPI when start() began it. When an exception is on its way through and there are other
  // ranks, which would wait for this one, it aborts the run.
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  // By the environment that the launcher sets (Open MPI, MPICH and its kin, PMIx); does not start
  // MPI.
  static bool launched_by_mpirun();

  // Empty, or why this build has no MPI and what to install.
  static std::string why_unavailable();

  // Starts MPI, with calls from the main thread only (MPI_THREAD_FUNNELED); once, later calls do
  // nothing. Built without MPI it stays one rank. Throws std::runtime_error when the launcher
  // started several processes that would not find each other (no MPI in this build, or another MPI
  // than the launcher's), and when MPI has already ended in this process.
  void start();

  // Until start(): rank 0 of 1, and no communicator.
  int rank() const;
  int ranks() const;
  const void* communicator() const;  // MPI_Comm* for Resources::communicator, or null

  // Collective: all ranks make the same calls in the same order.
  void barrier() const;
  double max(double value) const;  // over the ranks
  bool same_on_all_ranks(std::uint64_t hash) const;
  std::int64_t broadcast(std::int64_t value) const;       // rank 0's
  double broadcast(double value) const;                   // rank 0's
  std::string broadcast(const std::string& value) const;  // rank 0's

  // Ends all ranks within seconds, with exit status 1 and "stepladder: rank 2 of 4: <reason>" on
  // stderr.
  [[noreturn]] void abort(const std::string& reason) const;

 private:
  struct State;
  std::unique_ptr<State> state_;  // null until start()
};

}  // namespace stepladder
