#include "harness/ranks/mpi_session.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>

#include "harness/io/hash.hpp"

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

// An empty what() would look like success.
void MpiSession::end_agreement(const std::exception_ptr& error, const std::string& reason) const {
  const std::string first =
      failure(error != nullptr && reason.empty() ? "an error without a message" : reason);
  if (first.empty()) return;
  reason_of_all_ranks_ = first;
  if (error != nullptr && first == reason) std::rethrow_exception(error);
  throw RankFailed(first);
}

bool MpiSession::all_threw(const std::exception& error) const {
  return !reason_of_all_ranks_.empty() && reason_of_all_ranks_ == error.what();
}

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
  MPI_Comm communicator;  // of the variants
  MPI_Comm own;           // of the calls below: they meet no call of a variant
  int rank;
  int ranks;
  int hosts;
  bool initialized_here;             // by start(); then the destructor finalizes it
  std::unique_ptr<RankWatch> watch;  // null if nothing is watched
};

namespace {

// The ranks that this rank shares memory with. The caller frees it.
MPI_Comm host_of(MPI_Comm communicator) {
  MPI_Comm host = MPI_COMM_NULL;
  MPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  return host;
}

// The number of ranks that are the first of those they share memory with.
int count_hosts(MPI_Comm communicator) {
  MPI_Comm host = host_of(communicator);
  int rank = 0;
  MPI_Comm_rank(host, &rank);
  MPI_Comm_free(&host);
  int first = rank == 0 ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_SUM, communicator);
  return first;
}

// The rows of the ranks of this host, in memory that they share; or one row of this rank alone.
std::unique_ptr<RankWatch> watch_ranks(MPI_Comm communicator, int hosts) {
  const double limit = RankWatch::limit_from_environment();
  int rank = 0, ranks = 1, row = 0, rows = 1;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &ranks);
  if (ranks == 1) return nullptr;
  MPI_Comm host = host_of(communicator);
  MPI_Comm_rank(host, &row);
  MPI_Comm_size(host, &rows);
  RankWatch::Table table;
  if (row == 0) table = RankWatch::make_table(rows);
  int source[] = {getpid(), table.file};
  MPI_Bcast(source, 2, MPI_INT, 0, host);
  if (row != 0) table.rows = RankWatch::open_table(rows, source[0], source[1]);
  MPI_Barrier(host);  // all have opened it
  if (table.file >= 0) close(table.file);
  MPI_Comm_free(&host);
  if (table.rows.empty()) {
    table = RankWatch::make_table(1);
    if (table.file >= 0) close(table.file);
    row = 0;
  }
  if (limit == 0 || table.rows.empty()) return nullptr;
  return std::make_unique<RankWatch>(rank, ranks, hosts, limit, table.rows,
                                     static_cast<std::size_t>(row));
}

std::string broadcast_from(int root, const std::string& value, MPI_Comm communicator) {
  auto size = static_cast<std::int64_t>(value.size());
  MPI_Bcast(&size, 1, MPI_INT64_T, root, communicator);
  std::string text = value;
  text.resize(static_cast<std::size_t>(size));
  MPI_Bcast(text.data(), static_cast<int>(size), MPI_CHAR, root, communicator);
  return text;
}

// The first line in which they differ, of each; "nothing" past the end of one.
std::pair<std::string, std::string> first_difference(const std::string& a, const std::string& b) {
  std::size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
  const auto line = [&](const std::string& text) {
    const std::size_t first = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    const std::size_t begin = first == std::string::npos ? 0 : first + 1;
    const std::string found = text.substr(begin, text.find('\n', begin) - begin);
    return found.empty() ? std::string("nothing") : fmt::format("\"{}\"", found);
  };
  return {line(a), line(b)};
}

}  // namespace

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
    // Open MPI reads it here only. Variants can then ask for an algorithm; without a request its
    // choice stays the same.
    setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "1", 0);
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    if (provided < MPI_THREAD_SERIALIZED) {
      MPI_Finalize();
      throw std::runtime_error(
          "this MPI library allows calls from one thread only; gradients that are reduced beside "
          "the computation need MPI_THREAD_SERIALIZED");
    }
  }
  state_ =
      std::make_unique<State>(State{MPI_COMM_WORLD, MPI_COMM_NULL, 0, 1, 1, before == 0, nullptr});
  MPI_Comm_dup(MPI_COMM_WORLD, &state_->own);
  MPI_Comm_rank(state_->communicator, &state_->rank);
  MPI_Comm_size(state_->communicator, &state_->ranks);
  if (state_->ranks == 1 && launched_ranks() > 1)
    throw_no_communication(
        "each of them finds itself alone: use the mpirun of the MPI library that "
        "stepladder was built with");
  state_->hosts = count_hosts(state_->own);
  state_->watch = watch_ranks(state_->own, state_->hosts);
}

MpiSession::~MpiSession() {
  if (state_ == nullptr || !state_->initialized_here) return;
  if (std::uncaught_exceptions() > 0 && state_->ranks > 1) abort("stopped by an error");
  const RankWatch::Call call(state_->watch.get(), RankWatch::finalize);
  MPI_Comm_free(&state_->own);
  MPI_Finalize();
}

int MpiSession::rank() const { return state_ == nullptr ? 0 : state_->rank; }
int MpiSession::ranks() const { return state_ == nullptr ? 1 : state_->ranks; }
int MpiSession::hosts() const { return state_ == nullptr ? 1 : state_->hosts; }
const void* MpiSession::communicator() const {
  return state_ == nullptr ? nullptr : &state_->communicator;
}

void MpiSession::barrier() const {
  if (state_ == nullptr) return;
  const RankWatch::Call call(state_->watch.get(), RankWatch::barrier);
  MPI_Barrier(state_->own);
}

double MpiSession::max(double value) const {
  if (state_ == nullptr) return value;
  const RankWatch::Call call(state_->watch.get(), RankWatch::maximum);
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, state_->own);
  return value;
}

bool MpiSession::same_on_all_ranks(std::uint64_t hash) const {
  if (state_ == nullptr) return true;
  const RankWatch::Call call(state_->watch.get(), RankWatch::comparison);
  std::uint64_t bounds[] = {hash, ~hash};  // the maximum of ~hash is the inverted minimum of hash
  MPI_Allreduce(MPI_IN_PLACE, bounds, 2, MPI_UINT64_T, MPI_MAX, state_->own);
  return bounds[0] == ~bounds[1];
}

int MpiSession::ranks_of_host_with(int value) const {
  if (state_ == nullptr) return 1;
  const RankWatch::Call call(state_->watch.get(), RankWatch::comparison);
  MPI_Comm host = host_of(state_->own);
  int ranks = 0;
  MPI_Comm_size(host, &ranks);
  std::vector<int> values(static_cast<std::size_t>(ranks));
  MPI_Allgather(&value, 1, MPI_INT, values.data(), 1, MPI_INT, host);
  MPI_Comm_free(&host);
  return static_cast<int>(std::count(values.begin(), values.end(), value));
}

std::int64_t MpiSession::broadcast(std::int64_t value) const {
  if (state_ == nullptr) return value;
  const RankWatch::Call call(state_->watch.get(), RankWatch::broadcast_of_rank_0);
  MPI_Bcast(&value, 1, MPI_INT64_T, 0, state_->own);
  return value;
}

double MpiSession::broadcast(double value) const {
  if (state_ == nullptr) return value;
  const RankWatch::Call call(state_->watch.get(), RankWatch::broadcast_of_rank_0);
  MPI_Bcast(&value, 1, MPI_DOUBLE, 0, state_->own);
  return value;
}

std::string MpiSession::broadcast(const std::string& value) const {
  if (state_ == nullptr) return value;
  const RankWatch::Call call(state_->watch.get(), RankWatch::broadcast_of_rank_0);
  return broadcast_from(0, value, state_->own);
}

void MpiSession::require_same(const std::string& what,
                              const std::vector<std::string>& lines) const {
  if (state_ == nullptr || state_->ranks == 1) return;
  const RankWatch::Call call(state_->watch.get(), RankWatch::comparison);
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  const std::uint64_t own = fnv1a(std::as_bytes(std::span(text)));
  std::uint64_t wanted = own;
  MPI_Bcast(&wanted, 1, MPI_UINT64_T, 0, state_->own);
  constexpr int none = std::numeric_limits<int>::max();
  int odd = own == wanted ? none : state_->rank;
  MPI_Allreduce(MPI_IN_PLACE, &odd, 1, MPI_INT, MPI_MIN, state_->own);
  if (odd == none) return;
  const auto [other, first] = first_difference(broadcast_from(odd, text, state_->own),
                                               broadcast_from(0, text, state_->own));
  reason_of_all_ranks_ =
      fmt::format("rank {} has another {} than rank 0: {}, not {}", odd, what, other, first);
  throw RanksDisagree(reason_of_all_ranks_);
}

std::string MpiSession::failure(const std::string& reason) const {
  if (state_ == nullptr || state_->ranks == 1) return reason;
  const RankWatch::Call call(state_->watch.get(), RankWatch::comparison);
  constexpr int none = std::numeric_limits<int>::max();
  int first = reason.empty() ? none : state_->rank;
  MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, state_->own);
  if (first == none) return {};
  const std::string text = broadcast_from(first, reason, state_->own);
  int same = reason == text ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_MIN, state_->own);
  return same != 0 ? text : fmt::format("rank {} of {}: {}", first, state_->ranks, text);
}

RankWatch::Call MpiSession::watch(const std::string& name, double expected_seconds) const {
  return {state_ == nullptr ? nullptr : state_->watch.get(), name, expected_seconds};
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
int MpiSession::hosts() const { return 1; }
const void* MpiSession::communicator() const { return nullptr; }
void MpiSession::barrier() const {}
double MpiSession::max(double value) const { return value; }
bool MpiSession::same_on_all_ranks(std::uint64_t) const { return true; }
int MpiSession::ranks_of_host_with(int) const { return 1; }
std::int64_t MpiSession::broadcast(std::int64_t value) const { return value; }
double MpiSession::broadcast(double value) const { return value; }
std::string MpiSession::broadcast(const std::string& value) const { return value; }
void MpiSession::require_same(const std::string&, const std::vector<std::string>&) const {}
std::string MpiSession::failure(const std::string& reason) const { return reason; }
RankWatch::Call MpiSession::watch(const std::string& name, double expected_seconds) const {
  return {nullptr, name, expected_seconds};
}

void MpiSession::abort(const std::string& reason) const {
  print_reason(rank(), ranks(), reason);
  std::_Exit(1);
}

#endif

}  // namespace stepladder
