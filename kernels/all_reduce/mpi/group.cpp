#include "kernels/all_reduce/mpi/group.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

constexpr int tag = 1;  // of channel 0

std::string text(const std::array<std::int64_t, 2>& problem) {
  const Problem p{.operation = static_cast<Operation>(problem[1]), .count = problem[0]};
  return direction(p) + " of " + shape(p) + " elements";
}

// Throws on all ranks if any rank's problem differs from rank 0's; the message names the lowest.
void require_same_problem(const Problem& problem, MPI_Comm communicator, int rank, int ranks) {
  const std::array<std::int64_t, 2> mine{problem.count,
                                         static_cast<std::int64_t>(problem.operation)};
  std::array<std::int64_t, 2> root = mine;
  MPI_Bcast(root.data(), 2, MPI_INT64_T, 0, communicator);
  const int suspect = mine == root ? ranks : rank;
  int first = ranks;
  MPI_Allreduce(&suspect, &first, 1, MPI_INT, MPI_MIN, communicator);
  if (first == ranks) return;
  std::array<std::int64_t, 2> other = mine;
  MPI_Bcast(other.data(), 2, MPI_INT64_T, first, communicator);
  throw std::invalid_argument("all_reduce: rank 0 has the " + text(root) + ", but rank " +
                              std::to_string(first) + " has the " + text(other) +
                              "; the problem must be the same on all ranks");
}

}  // namespace

Group::Group(const Problem& problem, const Resources& resources, std::int64_t longest)
    : communicator_(communicator_of(resources)), longest_(longest) {
  if (problem.gpus) throw Unsupported("its ranks are processes, not the GPUs of one");
  MPI_Comm_rank(communicator_, &rank_);
  MPI_Comm_size(communicator_, &ranks_);
  require_same_problem(problem, communicator_, rank_, ranks_);
  if (problem.count < 0)
    throw std::invalid_argument("all_reduce: the count is " + std::to_string(problem.count) +
                                "; it must be 0 or more");
  if (problem.ranks != ranks_)
    throw std::invalid_argument("all_reduce: the problem is for " + std::to_string(problem.ranks) +
                                " ranks, but the communicator has " + std::to_string(ranks_));
}

Group::Group(MPI_Comm communicator, std::int64_t longest)
    : communicator_(communicator), longest_(longest) {
  MPI_Comm_rank(communicator_, &rank_);
  MPI_Comm_size(communicator_, &ranks_);
}

void Group::send(const float* values, std::int64_t count, int to) const {
  for (std::int64_t at = 0; at < count; at += longest_) {
    const int length = static_cast<int>(std::min(longest_, count - at));
    MPI_Send(values + at, length, MPI_FLOAT, to, tag, communicator_);
  }
}

void Group::receive(float* values, std::int64_t count, int from) const {
  for (std::int64_t at = 0; at < count; at += longest_) {
    const int length = static_cast<int>(std::min(longest_, count - at));
    MPI_Recv(values + at, length, MPI_FLOAT, from, tag, communicator_, MPI_STATUS_IGNORE);
  }
}

void Group::exchange(const Outgoing& out, const Incoming& in) const {
  // The two messages may differ in length; the shorter one continues with MPI_PROC_NULL.
  for (std::int64_t at = 0; at < std::max(out.count, in.count); at += longest_) {
    const std::int64_t out_at = std::min(at, out.count);
    const std::int64_t in_at = std::min(at, in.count);
    const int out_length = static_cast<int>(std::min(longest_, out.count - out_at));
    const int in_length = static_cast<int>(std::min(longest_, in.count - in_at));
    MPI_Sendrecv(out.values + out_at, out_length, MPI_FLOAT,
                 out_length > 0 ? out.to : MPI_PROC_NULL, tag, in.values + in_at, in_length,
                 MPI_FLOAT, in_length > 0 ? in.from : MPI_PROC_NULL, tag, communicator_,
                 MPI_STATUS_IGNORE);
  }
}

MPI_Request Group::start_send(const float* values, std::int64_t count, int to, int channel) const {
  MPI_Request request = MPI_REQUEST_NULL;
  if (count > 0)
    MPI_Isend(values, static_cast<int>(count), MPI_FLOAT, to, tag + channel, communicator_,
              &request);
  return request;
}

MPI_Request Group::start_receive(float* values, std::int64_t count, int from, int channel) const {
  MPI_Request request = MPI_REQUEST_NULL;
  if (count > 0)
    MPI_Irecv(values, static_cast<int>(count), MPI_FLOAT, from, tag + channel, communicator_,
              &request);
  return request;
}

void Group::wait(MPI_Request& request) { MPI_Wait(&request, MPI_STATUS_IGNORE); }

void Group::wait_all(std::span<MPI_Request> requests) {
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

std::size_t Group::wait_any(std::span<MPI_Request> requests) {
  int index = MPI_UNDEFINED;
  MPI_Waitany(static_cast<int>(requests.size()), requests.data(), &index, MPI_STATUS_IGNORE);
  return index == MPI_UNDEFINED ? requests.size() : static_cast<std::size_t>(index);
}

}  // namespace stepladder::all_reduce
