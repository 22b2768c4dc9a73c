#include "harness/io/mpi_session.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>

#ifdef STEPLADDER_HAVE_MPI
#include <mpi.h>
#endif

namespace stepladder {
namespace {

// Set by mpirun of Open MPI, and by mpiexec of MPICH and its derivatives.
constexpr const char* size_variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};

// The number of processes in the environment of the launcher; 1 if it is not set.
int launched_ranks() {
  for (const char* name : size_variables)
    if (const char* value = std::getenv(name)) return std::atoi(value);
  return 1;
}

[[noreturn]] void throw_no_communication(const std::string& cause) {
  throw std::runtime_error("mpirun started " + std::to_string(launched_ranks()) +
                           " processes, but " + cause);
}

void print_reason(int rank, int ranks, const std::string& reason) {
  std::fflush(stdout);
  std::fprintf(stderr, "stepladder: rank %d of %d: %s\n", rank, ranks, reason.c_str());
  std::fflush(stderr);
}

}  // namespace

bool MpiSession::launched_by_mpirun() {
  for (const char* name : size_variables)
    if (std::getenv(name) != nullptr) return true;
  return std::getenv("PMIX_RANK") != nullptr;  // srun --mpi=pmix
}

MpiSession::MpiSession() = default;

MpiSession& mpi_session() {
  static MpiSession session;
  return session;
}

#ifdef STEPLADDER_HAVE_MPI

struct MpiSession::State {
  MPI_Comm communicator;
  int rank;
  int ranks;
  bool initialized_here;  // by start(); then the destructor finalizes it
};

std::string MpiSession::why_unavailable() { return ""; }

void MpiSession::start() {
  if (state_ != nullptr) return;
  int before = 0;
  int after = 0;
  MPI_Initialized(&before);
  MPI_Finalized(&after);
  if (after != 0) throw std::runtime_error("MPI has ended in this process and cannot start again");
  if (before == 0) {
    int provided = MPI_THREAD_SINGLE;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  }
  state_ = std::make_unique<State>(State{MPI_COMM_WORLD, 0, 1, before == 0});
  MPI_Comm_rank(state_->communicator, &state_->rank);
  MPI_Comm_size(state_->communicator, &state_->ranks);
  if (state_->ranks == 1 && launched_ranks() > 1)
    throw_no_communication(
        "each of them finds itself alone: use the mpirun of the MPI library that "
        "stepladder was built with");
}

MpiSession::~MpiSession() {
  if (state_ == nullptr || !state_->initialized_here) return;
  if (std::uncaught_exceptions() > 0 && state_->ranks > 1) abort("stopped by an error");
  MPI_Finalize();
}

int MpiSession::rank() const { return state_ == nullptr ? 0 : state_->rank; }
int MpiSession::ranks() const { return state_ == nullptr ? 1 : state_->ranks; }
const void* MpiSession::communicator() const {
  return state_ == nullptr ? nullptr : &state_->communicator;
}

void MpiSession::barrier() const {
  if (state_ != nullptr) MPI_Barrier(state_->communicator);
}

double MpiSession::max(double value) const {
  if (state_ != nullptr)
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, state_->communicator);
  return value;
}

bool MpiSession::same_on_all_ranks(std::uint64_t hash) const {
  if (state_ == nullptr) return true;
  std::uint64_t bounds[] = {hash, ~hash};  // the maximum of ~hash is the inverted minimum of hash
  MPI_Allreduce(MPI_IN_PLACE, bounds, 2, MPI_UINT64_T, MPI_MAX, state_->communicator);
  return bounds[0] == ~bounds[1];
}

std::int64_t MpiSession::broadcast(std::int64_t value) const {
  if (state_ != nullptr) MPI_Bcast(&value, 1, MPI_INT64_T, 0, state_->communicator);
  return value;
}

double MpiSession::broadcast(double value) const {
  if (state_ != nullptr) MPI_Bcast(&value, 1, MPI_DOUBLE, 0, state_->communicator);
  return value;
}

std::string MpiSession::broadcast(const std::string& value) const {
  std::string text = value;
  text.resize(static_cast<std::size_t>(broadcast(static_cast<std::int64_t>(value.size()))));
  if (state_ != nullptr)
    MPI_Bcast(text.data(), static_cast<int>(text.size()), MPI_CHAR, 0, state_->communicator);
  return text;
}

void MpiSession::abort(const std::string& reason) const {
  print_reason(rank(), ranks(), reason);
  if (state_ != nullptr) MPI_Abort(state_->communicator, 1);
  std::_Exit(1);
}

#else

struct MpiSession::State {};

std::string MpiSession::why_unavailable() { return "built without MPI (Debian: libopenmpi-dev)"; }

void MpiSession::start() {
  if (launched_ranks() > 1)
    throw_no_communication("stepladder was " + why_unavailable() +
                           "; install it and build again, or start "
                           "one process without mpirun");
}

MpiSession::~MpiSession() = default;
int MpiSession::rank() const { return 0; }
int MpiSession::ranks() const { return 1; }
const void* MpiSession::communicator() const { return nullptr; }
void MpiSession::barrier() const {}
double MpiSession::max(double value) const { return value; }
bool MpiSession::same_on_all_ranks(std::uint64_t) const { return true; }
std::int64_t MpiSession::broadcast(std::int64_t value) const { return value; }
double MpiSession::broadcast(double value) const { return value; }
std::string MpiSession::broadcast(const std::string& value) const { return value; }

void MpiSession::abort(const std::string& reason) const {
  print_reason(rank(), ranks(), reason);
  std::_Exit(1);
}

#endif

}  // namespace stepladder
