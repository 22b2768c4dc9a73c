// The ranks of one all-reduce and messages of any length between them. For the MPI rungs; each of
// them includes kernels/common/mpi.hpp itself as well, which is how the build learns that it needs
// MPI.
//
// A failing MPI call ends the run: the communicator keeps MPI's default handler,
// MPI_ERRORS_ARE_FATAL.
#pragma once

#include <cstdint>

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {

// Floats in one MPI message: 1 GiB, far below the 2^31 elements that MPI can count and also below
// the 2^31 bytes that some libraries count inside.
inline constexpr std::int64_t longest_message = std::int64_t{1} << 28;

class Group {
 public:
  // Collective: every rank of the communicator makes its group with the same problem. Throws
  // Unsupported without MPI, and std::invalid_argument on every rank when the problem's ranks are
  // not the communicator's, the count is negative, or a rank has another problem than rank 0.
  // Messages longer than `longest` elements travel in pieces.
  Group(const Problem& problem, const Resources& resources, std::int64_t longest = longest_message);

  MPI_Comm communicator() const { return communicator_; }
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  // Blocking; counts are in floats and known on both sides, so that 0 sends no message at all.
  void send(const float* values, std::int64_t count, int to) const;
  void receive(float* values, std::int64_t count, int from) const;

  struct Outgoing {
    const float* values;  // [count]
    std::int64_t count;
    int to;
  };
  struct Incoming {
    float* values;  // [count], apart from what goes out
    std::int64_t count;
    int from;
  };
  // Both at the same time, so that no ring of ranks that all send first can lock up.
  void exchange(const Outgoing& out, const Incoming& in) const;

 private:
  MPI_Comm communicator_;
  std::int64_t longest_;
  int rank_ = 0;
  int ranks_ = 1;
};

}  // namespace stepladder::all_reduce
