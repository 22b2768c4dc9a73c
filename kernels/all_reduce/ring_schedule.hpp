// The schedule of a ring all-reduce. The vector is divided into one chunk per rank. At each of
// 2 (ranks - 1) steps, rank r receives a chunk from rank r - 1:
//
//     reduce-scatter   steps 0 … ranks - 2: rank r receives the partial sum of chunk r - step - 1
//                      and adds its own values. Afterwards rank r has the sum of chunk r + 1.
//     all-gather       steps 0 … ranks - 2: rank r receives the sum of chunk r - step.
#pragma once

#include <cstdint>

#include "kernels/common/cpu/partition.hpp"

namespace stepladder::all_reduce {

struct Chunk {
  std::int64_t first, count;  // elements
};

// Chunk `index`, taken modulo `chunks`, of `whole`. Chunks begin at multiples of `granule` elements
// from whole.first; see partition().
inline Chunk chunk_of(const Chunk& whole, int chunks, int index, std::int64_t granule = 1) {
  const auto [begin, end] =
      partition(whole.count, chunks, (index % chunks + chunks) % chunks, granule);
  return {whole.first + begin, end - begin};
}

// The index of the chunk that `rank` receives at `step`, to be taken modulo the number of ranks.
inline int reduce_scatter_chunk(int rank, int step) { return rank - step - 1; }
inline int all_gather_chunk(int rank, int step) { return rank - step; }

}  // namespace stepladder::all_reduce
