// The ranks of this run. Without mpirun, or without MPI in the build, there is one rank, and all
// calls work for it.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness/ranks/rank_watch.hpp"

namespace stepladder {

// Thrown by all ranks.
struct RanksDisagree : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Thrown by all ranks: what some of them, or each for another reason, failed in.
struct RankFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class MpiSession {
 public:
  MpiSession();
  // Finalizes MPI if start() initialized it. During an exception it aborts the run instead, because
  // the other ranks would wait for this one.
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  // From the launcher's environment variables (Open MPI, MPICH and its derivatives, PMIx). Does not
  // start MPI.
  static bool launched_by_mpirun();

  // Empty, or the reason that this build has no MPI, with the package to install.
  static std::string why_unavailable();

  // Initializes MPI with MPI_THREAD_SERIALIZED: one thread at a time may call it. Later calls, and
  // calls in a build without MPI, do nothing. Throws std::runtime_error if the launcher started
  // several processes that cannot communicate (no MPI in this build, or another MPI than the
  // launcher's), and if MPI was already finalized.
  void start();

  // Before start(): rank 0 of 1, and no communicator.
  int rank() const;
  int ranks() const;
  int hosts() const;                 // whose ranks share memory
  const void* communicator() const;  // MPI_Comm* for Resources::communicator, or null

  // Collective: all ranks make the same calls in the same order.
  void barrier() const;
  double max(double value) const;  // over the ranks
  bool same_on_all_ranks(std::uint64_t hash) const;
  int ranks_of_host_with(int value) const;  // that call with this rank's value
  // Throws RanksDisagree with the first rank that has other lines than rank 0, and with the first
  // line in which they differ. `what`: "command line".
  void require_same(const std::string& what, const std::vector<std::string>& lines) const;
  // Empty if it is empty on all ranks; the reason if all ranks have the same; else that of the
  // first rank that has one: "rank 1 of 3: <reason>".
  std::string failure(const std::string& reason) const;
  // The guard of what may fail on some ranks only, such as reading a file. Runs `work`, which has
  // no collective calls, and returns its result. If it throws on any rank all ranks throw: its
  // exception if all have the same reason, else RankFailed.
  template <class Work>
  auto agree(const Work& work) const;
  // Whether agree() or require_same() threw it on all ranks. No other rank waits for this one then.
  bool all_threw(const std::exception& error) const;
  std::int64_t broadcast(std::int64_t value) const;       // rank 0's
  double broadcast(double value) const;                   // rank 0's
  std::string broadcast(const std::string& value) const;  // rank 0's

  // Until the result is destroyed, this rank is in `name`, where it may wait for the other ranks.
  // When it waits longer than expected and the limit of STEPLADDER_RANK_TIMEOUT, the run ends with
  // the rank that is missing. The collective calls above are watched in the same way.
  RankWatch::Call watch(const std::string& name, double expected_seconds = 0) const;

  // Aborts all ranks with exit status 1 and "stepladder: rank 2 of 4: <reason>" on stderr.
  [[noreturn]] void abort(const std::string& reason) const;

 private:
  void end_agreement(const std::exception_ptr& error, const std::string& reason) const;

  struct State;
  std::unique_ptr<State> state_;             // null until start()
  mutable std::string reason_of_all_ranks_;  // what() of the last error that all ranks threw
};

template <class Work>
auto MpiSession::agree(const Work& work) const {
  using Result = std::invoke_result_t<Work>;
  std::optional<Result> result;
  std::exception_ptr error;
  std::string reason;
  try {
    result.emplace(work());
  } catch (const std::exception& thrown) {
    error = std::current_exception();
    reason = thrown.what();
  }
  end_agreement(error, reason);
  return Result(*std::move(result));
}

// The session of this program.
MpiSession& mpi_session();

}  // namespace stepladder
