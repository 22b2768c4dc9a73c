// Stands in for harness/ranks/mpi_session.cpp. All simulated ranks share the session: it asks MPI
// which rank calls. Nothing is watched, because the simulator finds ranks that wait for each other.
//
// Without smpirun, SimGrid's kernel does not know the ranks of MPI_COMM_WORLD, and messages from
// any source do not match. Each rank has an equal communicator instead.
#include "harness/ranks/mpi_session.hpp"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace stepladder {

struct MpiSession::State {
  std::vector<MPI_Comm> communicators;  // [rank]
};

MpiSession::MpiSession() = default;
MpiSession::~MpiSession() = default;

MpiSession& mpi_session() {
  static MpiSession session;
  return session;
}

bool MpiSession::launched_by_mpirun() { return true; }
std::string MpiSession::why_unavailable() { return ""; }

void MpiSession::start() {
  if (!state_)
    state_ = std::make_unique<State>(
        State{std::vector(static_cast<std::size_t>(ranks()), MPI_COMM_NULL)});
  MPI_Comm_split(MPI_COMM_WORLD, 0, rank(),
                 &state_->communicators[static_cast<std::size_t>(rank())]);
}

int MpiSession::rank() const {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int MpiSession::ranks() const {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

int MpiSession::hosts() const { return ranks(); }
const void* MpiSession::communicator() const {
  return &state_->communicators[static_cast<std::size_t>(rank())];
}
void MpiSession::barrier() const { MPI_Barrier(MPI_COMM_WORLD); }

double MpiSession::max(double value) const {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return value;
}

int MpiSession::ranks_of_host_with(int) const { return 1; }  // one rank on each node
bool MpiSession::same_on_all_ranks(std::uint64_t hash) const {
  std::uint64_t bounds[] = {hash, ~hash};  // the maximum of ~hash is the inverted minimum of hash
  MPI_Allreduce(MPI_IN_PLACE, bounds, 2, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  return bounds[0] == ~bounds[1];
}

std::int64_t MpiSession::broadcast(std::int64_t value) const {
  MPI_Bcast(&value, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
  return value;
}

double MpiSession::broadcast(double value) const {
  MPI_Bcast(&value, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return value;
}

std::string MpiSession::broadcast(const std::string& value) const {
  std::string text = value;
  text.resize(static_cast<std::size_t>(broadcast(static_cast<std::int64_t>(value.size()))));
  MPI_Bcast(text.data(), static_cast<int>(text.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
  return text;
}

void MpiSession::require_same(const std::string&, const std::vector<std::string>&) const {}

// The ranks share the process and its files: what fails on one fails on all.
std::string MpiSession::failure(const std::string& reason) const { return reason; }
void MpiSession::end_agreement(const std::exception_ptr& error, const std::string&) const {
  if (error != nullptr) std::rethrow_exception(error);
}
bool MpiSession::all_threw(const std::exception&) const { return true; }

RankWatch::Call MpiSession::watch(const std::string& name, double expected_seconds) const {
  return {nullptr, name, expected_seconds};
}

void MpiSession::abort(const std::string& reason) const {
  std::printf("failed: rank %d: %s\n", rank(), reason.c_str());
  std::fflush(stdout);
  std::_Exit(1);
}

}  // namespace stepladder
