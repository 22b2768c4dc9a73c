#include "harness/ranks/communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <exception>
#include <limits>
#include <stdexcept>
#include <utility>

#include "harness/ranks/mpi_session.hpp"

#ifdef STEPLADDER_HAVE_MPI
#include <mpi.h>
#include <sched.h>
#endif

namespace stepladder {

#ifdef STEPLADDER_HAVE_MPI

struct Communicator::Handle {
  MPI_Comm communicator;
  bool owned;
};

struct Communicator::Transfer::State {
  MPI_Request request = MPI_REQUEST_NULL;
  std::string name;
  double expected = 0;  // see Communicator::expect()
};

namespace {

constexpr int message_tag = 15;

// MPI counts in int.
template <class Count>
int count_of(Count count) {
  if (static_cast<std::uint64_t>(count) > std::numeric_limits<int>::max())
    throw std::runtime_error(
        fmt::format("a message of {} elements is too long for MPI: expected at most {}", count,
                    std::numeric_limits<int>::max()));
  return static_cast<int>(count);
}

// The MPI library of a simulator has no time while a rank polls.
#ifdef STEPLADDER_SIMULATED
void wait_for(MPI_Request& request) { MPI_Wait(&request, MPI_STATUS_IGNORE); }
#else
// Polls and yields the core; libraries wait in a loop of their own without that.
template <class Done>
void yield_until(const Done& done) {
  constexpr int yields = 200;
  for (int round = 0; !done(); ++round) {
    if (round < yields) {
      sched_yield();
    } else {
      const timespec pause{0, 20'000};
      nanosleep(&pause, nullptr);
    }
  }
}

void wait_for(MPI_Request& request) {
  yield_until([&] {
    int done = 0;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  });
}
#endif

}  // namespace

Communicator::Communicator(std::string name) : name_(std::move(name)) {
  const MpiSession& session = mpi_session();
  rank_ = session.rank();
  ranks_ = session.ranks();
  if (session.communicator() != nullptr)
    handle_ = std::make_unique<Handle>(
        Handle{*static_cast<const MPI_Comm*>(session.communicator()), false});
}

Communicator::Communicator(std::string name, std::unique_ptr<Handle> handle)
    : name_(std::move(name)), handle_(std::move(handle)) {
  MPI_Comm_rank(handle_->communicator, &rank_);
  MPI_Comm_size(handle_->communicator, &ranks_);
}

Communicator Communicator::split(int color) const {
  if (!handle_) return Communicator(name_);
  const RankWatch::Call call = mpi_session().watch(name_, expected_);
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(handle_->communicator, color, rank_, &part);
  return {name_, std::make_unique<Handle>(Handle{part, true})};
}

// During an exception other ranks may not come here.
Communicator::~Communicator() {
  if (handle_ && handle_->owned && std::uncaught_exceptions() == 0)
    MPI_Comm_free(&handle_->communicator);
}
Communicator::Communicator(Communicator&&) noexcept = default;

void Communicator::send_bytes(int to, std::span<const std::byte> bytes) const {
  const RankWatch::Call call = mpi_session().watch(name_, expected_);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Isend(bytes.data(), count_of(bytes.size()), MPI_BYTE, to, message_tag, handle_->communicator,
            &request);
  wait_for(request);
}

void Communicator::receive_bytes(int from, std::span<std::byte> bytes) const {
  const RankWatch::Call call = mpi_session().watch(name_, expected_);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(bytes.data(), count_of(bytes.size()), MPI_BYTE, from, message_tag,
            handle_->communicator, &request);
  wait_for(request);
}

int Communicator::await_message() const {
  const RankWatch::Call call = mpi_session().watch(name_, expected_);
  MPI_Status status;
#ifdef STEPLADDER_SIMULATED
  MPI_Probe(MPI_ANY_SOURCE, message_tag, handle_->communicator, &status);
#else
  yield_until([&] {
    int found = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, message_tag, handle_->communicator, &found, &status);
    return found != 0;
  });
#endif
  return status.MPI_SOURCE;
}

bool Communicator::Transfer::done() {
  if (!state_) return true;
  int done = 0;
  MPI_Test(&state_->request, &done, MPI_STATUS_IGNORE);
  if (done != 0) state_.reset();
  return done != 0;
}

void Communicator::Transfer::wait() {
  if (!state_) return;
  const RankWatch::Call call = mpi_session().watch(state_->name, state_->expected);
  wait_for(state_->request);
  state_.reset();
}

// Of messages that use another tag than the blocking calls.
Communicator::Transfer Communicator::start_send(int to, std::span<const float> values) const {
  Transfer transfer;
  transfer.state_ =
      std::make_unique<Transfer::State>(Transfer::State{MPI_REQUEST_NULL, name_, expected_});
  MPI_Isend(values.data(), count_of(values.size()), MPI_FLOAT, to, message_tag + 1,
            handle_->communicator, &transfer.state_->request);
  return transfer;
}

Communicator::Transfer Communicator::start_receive(int from, std::span<float> values) const {
  Transfer transfer;
  transfer.state_ =
      std::make_unique<Transfer::State>(Transfer::State{MPI_REQUEST_NULL, name_, expected_});
  MPI_Irecv(values.data(), count_of(values.size()), MPI_FLOAT, from, message_tag + 1,
            handle_->communicator, &transfer.state_->request);
  return transfer;
}

void Communicator::broadcast(int root, std::span<float> values) const {
  if (!handle_) return;
  const RankWatch::Call call = mpi_session().watch(name_, expected_);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibcast(values.data(), count_of(values.size()), MPI_FLOAT, root, handle_->communicator,
             &request);
  wait_for(request);
}

namespace {

template <class T>
void reduce(const std::string& name, std::span<T> values, MPI_Datatype type, MPI_Op operation,
            MPI_Comm communicator) {
  const RankWatch::Call call = mpi_session().watch(name);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(MPI_IN_PLACE, values.data(), count_of(values.size()), type, operation,
                 communicator, &request);
  wait_for(request);
}

}  // namespace

void Communicator::sum(std::span<float> values) const {
  if (handle_) reduce(name_, values, MPI_FLOAT, MPI_SUM, handle_->communicator);
}

void Communicator::sum(std::span<double> values) const {
  if (handle_) reduce(name_, values, MPI_DOUBLE, MPI_SUM, handle_->communicator);
}

void Communicator::minimum(std::span<double> values) const {
  if (handle_) reduce(name_, values, MPI_DOUBLE, MPI_MIN, handle_->communicator);
}

double Communicator::maximum(double value) const {
  if (handle_)
    reduce(name_, std::span<double>(&value, 1), MPI_DOUBLE, MPI_MAX, handle_->communicator);
  return value;
}

void Communicator::gather(std::span<float> all, const std::vector<Part>& parts) const {
  if (!handle_) return;
  const RankWatch::Call call = mpi_session().watch(name_, expected_);
  std::vector<int> counts, offsets;
  for (const Part& part : parts) {
    counts.push_back(count_of(part.count));
    offsets.push_back(count_of(part.from));
  }
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_FLOAT, all.data(), counts.data(), offsets.data(), MPI_FLOAT,
                  handle_->communicator, &request);
  wait_for(request);
}

void Communicator::reduce_scatter(std::span<const float> all,
                                  const std::vector<std::int64_t>& lengths,
                                  std::span<float> own) const {
  if (!handle_) {
    std::copy(all.begin(), all.end(), own.begin());
    return;
  }
  const RankWatch::Call call = mpi_session().watch(name_, expected_);
  std::vector<int> counts;
  for (const std::int64_t length : lengths) counts.push_back(count_of(length));
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ireduce_scatter(all.data(), own.data(), counts.data(), MPI_FLOAT, MPI_SUM,
                      handle_->communicator, &request);
  wait_for(request);
}

std::vector<std::string> Communicator::texts(const std::string& own) const {
  if (!handle_) return {own};
  const auto ranks = static_cast<std::size_t>(ranks_);
  std::vector<double> lengths(ranks, 0);
  lengths[static_cast<std::size_t>(rank_)] = static_cast<double>(own.size());
  sum(std::span<double>(lengths));
  std::vector<int> counts, offsets;
  int end = 0;
  for (const double length : lengths) {
    counts.push_back(static_cast<int>(length));
    offsets.push_back(end);
    end += counts.back();
  }
  std::string all(static_cast<std::size_t>(end), '\0');
  MPI_Allgatherv(own.data(), count_of(own.size()), MPI_CHAR, all.data(), counts.data(),
                 offsets.data(), MPI_CHAR, handle_->communicator);
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < ranks; ++r)
    texts.push_back(
        all.substr(static_cast<std::size_t>(offsets[r]), static_cast<std::size_t>(counts[r])));
  return texts;
}

#else

struct Communicator::Handle {};
struct Communicator::Transfer::State {};

namespace {
[[noreturn]] void no_other_rank() {
  throw std::logic_error("a message to another rank in a program without MPI");
}
}  // namespace

Communicator::Communicator(std::string name) : name_(std::move(name)) {}
Communicator Communicator::split(int) const { return Communicator(name_); }
Communicator::~Communicator() = default;
Communicator::Communicator(Communicator&&) noexcept = default;
void Communicator::send_bytes(int, std::span<const std::byte>) const { no_other_rank(); }
void Communicator::receive_bytes(int, std::span<std::byte>) const { no_other_rank(); }
int Communicator::await_message() const { no_other_rank(); }
bool Communicator::Transfer::done() { return true; }
void Communicator::Transfer::wait() {}
Communicator::Transfer Communicator::start_send(int, std::span<const float>) const {
  no_other_rank();
}
Communicator::Transfer Communicator::start_receive(int, std::span<float>) const { no_other_rank(); }
void Communicator::broadcast(int, std::span<float>) const {}
void Communicator::sum(std::span<float>) const {}
void Communicator::sum(std::span<double>) const {}
void Communicator::minimum(std::span<double>) const {}
double Communicator::maximum(double value) const { return value; }
void Communicator::gather(std::span<float>, const std::vector<Part>&) const {}
void Communicator::reduce_scatter(std::span<const float> all, const std::vector<std::int64_t>&,
                                  std::span<float> own) const {
  std::copy(all.begin(), all.end(), own.begin());
}
std::vector<std::string> Communicator::texts(const std::string& own) const { return {own}; }

#endif

Communicator::Transfer::Transfer() = default;
Communicator::Transfer::Transfer(Transfer&&) noexcept = default;
Communicator::Transfer& Communicator::Transfer::operator=(Transfer&& other) noexcept {
  wait();
  state_ = std::move(other.state_);
  return *this;
}
Communicator::Transfer::~Transfer() {
  if (std::uncaught_exceptions() == 0) wait();
}

}  // namespace stepladder
