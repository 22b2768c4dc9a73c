// The two halves of binomial_tree, for the rungs that need one half alone. In both, rank r is
// connected to r + 1, r + 2, r + 4, … as long as the distance is below r's lowest set bit; rank 0
// is the root.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/all_reduce/mpi/group.hpp"

namespace stepladder::all_reduce {

struct TreeSteps {
  // Floats that reduce() needs as workspace on this rank: [count] on ranks that receive, which are
  // even, and none elsewhere.
  static std::int64_t workspace(const Group& group, std::int64_t count);

  // Round k: ranks r with r mod 2^(k+1) = 2^k send their sum to r - 2^k. ceil(log2 p) rounds of
  // alpha + n beta + n gamma. input, output: [count], may be the same array; received: [workspace].
  // Afterwards rank 0's output is the sum over the ranks; other ranks that receive hold a partial
  // sum in theirs, and the rest do not write it.
  static void reduce(const Group& group, const float* input, float* output, std::int64_t count,
                     float* received);

  // Sends the same messages in reverse: ceil(log2 p) rounds of alpha + n beta, after which every
  // rank has the vector of rank 0. values: [count].
  static void broadcast(const Group& group, float* values, std::int64_t count);

  // Messages after each other, of either half.
  static double messages(double ranks) { return std::ceil(std::log2(ranks)); }
};

}  // namespace stepladder::all_reduce
