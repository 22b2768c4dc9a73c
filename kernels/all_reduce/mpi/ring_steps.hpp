// The two halves of the ring, for ring and for the rungs that need one half alone. The schedule is
// in kernels/all_reduce/ring_schedule.hpp.
#pragma once

#include <cstdint>

#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/ring_schedule.hpp"

namespace stepladder::all_reduce {

// Everywhere: the vector is divided into `chunks` chunks, at most one for each rank; 0: one for
// each. The remaining ranks own an empty one.

// The index of the chunk that `rank` receives at step 0 … 2 p - 3, through both halves.
inline int ring_index(int rank, int ranks, int step) {
  const bool reduces = step < ranks - 1;
  return reduces ? reduce_scatter_chunk(rank, step) : all_gather_chunk(rank, step - (ranks - 1));
}

// The chunk whose sum reduce_scatter leaves on this rank, and its index.
Chunk own_chunk(const Group& group, std::int64_t count, int chunks = 0);
int own_index(const Group& group);

// Floats of the longest chunk: the workspace of reduce_scatter.
std::int64_t longest_chunk(const Group& group, std::int64_t count, int chunks = 0);

// p - 1 steps: (p-1) alpha + (p-1)/p n beta + (p-1)/p n gamma. input, output: [count], may be the
// same array; received: [longest_chunk]. Afterwards own_chunk of output holds the sum over the
// ranks; the rest of output holds partial sums.
void reduce_scatter(const Group& group, const float* input, float* output, std::int64_t count,
                    float* received, int chunks = 0);

// p - 1 steps: (p-1) alpha + (p-1)/p n beta. values: [count], own_chunk complete; afterwards all of
// it.
void all_gather(const Group& group, float* values, std::int64_t count, int chunks = 0);

}  // namespace stepladder::all_reduce
