// The ranks of one all-reduce and messages of any length between them, for the MPI rungs. Each rung
// also includes kernels/common/mpi.hpp itself, by which the build detects that it needs MPI.
//
// A failing MPI call ends the program: the communicator keeps MPI's default error handler,
// MPI_ERRORS_ARE_FATAL.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {

// Floats in one MPI message: 1 GiB, below the 2^31 elements that MPI counts and below the 2^31
// bytes that some libraries count internally.
inline constexpr std::int64_t longest_message = std::int64_t{1} << 28;

class Group {
 public:
  // Collective: every rank of the communicator constructs its group with the same problem. Throws
  // Unsupported without MPI. Throws std::invalid_argument on every rank if the problem's number of
  // ranks differs from the communicator's, the count is negative, or the problem differs between
  // ranks. Messages longer than `longest` elements are sent in segments.
  Group(const Problem& problem, const Resources& resources, std::int64_t longest = longest_message);

  // Some ranks of an all-reduce, such as those of a node. Not collective; the caller keeps the
  // communicator until the group is destroyed.
  explicit Group(MPI_Comm communicator, std::int64_t longest = longest_message);

  MPI_Comm communicator() const { return communicator_; }
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  int next() const { return (rank_ + 1) % ranks_; }  // the neighbours in the ring
  int previous() const { return (rank_ + ranks_ - 1) % ranks_; }

  // Blocking. Both sides know the count, in floats; a count of 0 sends no message.
  void send(const float* values, std::int64_t count, int to) const;
  void receive(float* values, std::int64_t count, int from) const;

  struct Outgoing {
    const float* values;  // [count]
    std::int64_t count;
    int to;
  };
  struct Incoming {
    float* values;  // [count], must not overlap the outgoing values
    std::int64_t count;
    int from;
  };
  // Sends and receives concurrently, so that a ring of ranks that all send cannot deadlock.
  void exchange(const Outgoing& out, const Incoming& in) const;

  // Non-blocking, for counts of at most `longest` elements. A count of 0 sends no message: the
  // request is MPI_REQUEST_NULL. Messages between two ranks on one channel, from 0 to 7, arrive in
  // the order in which they start; the blocking calls use channel 0.
  MPI_Request start_send(const float* values, std::int64_t count, int to, int channel = 0) const;
  MPI_Request start_receive(float* values, std::int64_t count, int from, int channel = 0) const;
  static void wait(MPI_Request& request);
  static void wait_all(std::span<MPI_Request> requests);
  // The index of a request that is complete; requests.size() if all are MPI_REQUEST_NULL.
  static std::size_t wait_any(std::span<MPI_Request> requests);

 private:
  MPI_Comm communicator_;
  std::int64_t longest_;
  int rank_ = 0;
  int ranks_ = 1;
};

}  // namespace stepladder::all_reduce
