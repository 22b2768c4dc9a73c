// The two halves of gather_broadcast, for the rungs that need one half alone.
#pragma once

#include <cstdint>

#include "kernels/all_reduce/mpi/group.hpp"

namespace stepladder::all_reduce {

struct StarSteps {
  // Floats that reduce() needs as workspace on this rank: [count] on rank 0, none elsewhere.
  static std::int64_t workspace(const Group& group, std::int64_t count);

  // Rank 0 receives the vectors of all others in the order of the ranks and adds them:
  // (p-1) (alpha + n beta + n gamma). input, output: [count], may be the same array; received:
  // [workspace]. Afterwards rank 0's output is the sum over the ranks; the others do not write
  // theirs.
  static void reduce(const Group& group, const float* input, float* output, std::int64_t count,
                     float* received);

  // Rank 0 sends its vector to each of the others: (p-1) (alpha + n beta). values: [count].
  static void broadcast(const Group& group, float* values, std::int64_t count);

  // Messages after each other, of either half.
  static double messages(double ranks) { return ranks - 1; }
};

}  // namespace stepladder::all_reduce
