#include "kernels/all_reduce/mpi/ring_steps.hpp"

#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

// Chunk `index`, taken modulo the ranks.
Chunk chunk(const Group& group, std::int64_t count, int index, int chunks) {
  const int ranks = group.ranks();
  const int at = (index % ranks + ranks) % ranks;
  if (chunks == 0) chunks = ranks;
  return at < chunks ? chunk_of({0, count}, chunks, at) : Chunk{count, 0};
}

}  // namespace

int own_index(const Group& group) { return group.next(); }

Chunk own_chunk(const Group& group, std::int64_t count, int chunks) {
  return chunk(group, count, own_index(group), chunks);
}

std::int64_t longest_chunk(const Group& group, std::int64_t count, int chunks) {
  return count / (chunks == 0 ? group.ranks() : chunks) + 1;
}

void reduce_scatter(const Group& group, const float* input, float* output, std::int64_t count,
                    float* received, int chunks) {
  const int ranks = group.ranks();
  if (ranks == 1) copy(input, output, count);
  // Step 0 sends the input, later steps send partial sums.
  for (int step = 0; step < ranks - 1; ++step) {
    const Chunk out = chunk(group, count, reduce_scatter_chunk(group.next(), step), chunks);
    const Chunk in = chunk(group, count, reduce_scatter_chunk(group.rank(), step), chunks);
    const float* source = step == 0 ? input : output;
    group.exchange({source + out.first, out.count, group.next()},
                   {received, in.count, group.previous()});
    add(received, input + in.first, output + in.first, in.count);
  }
}

void all_gather(const Group& group, float* values, std::int64_t count, int chunks) {
  for (int step = 0; step < group.ranks() - 1; ++step) {
    const Chunk out = chunk(group, count, all_gather_chunk(group.next(), step), chunks);
    const Chunk in = chunk(group, count, all_gather_chunk(group.rank(), step), chunks);
    group.exchange({values + out.first, out.count, group.next()},
                   {values + in.first, in.count, group.previous()});
  }
}

}  // namespace stepladder::all_reduce
